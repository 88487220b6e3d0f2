#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "history/event.hpp"

namespace monolock::history {

// One claim, from its ask to its end. Points into the events, which must live as long.
struct story {
    claim_id id{};
    std::uint32_t lock = 0;
    instant lease{0};
    const event* ask = nullptr;
    const event* waiting = nullptr;
    const event* grant = nullptr;
    const event* last_act = nullptr;
    const event* stop = nullptr;       // its loss or its end, or its process's
    const event* closed = nullptr;     // after its end, if that is told
    instant confirmed_until{0};        // as far as is known: a killed process tells nothing more
    const event* confirmed = nullptr;  // its grant or confirmation that says so
    const event* furthest = nullptr;   // its grant or confirmation that looks the furthest ahead

    [[nodiscard]] bool granted() const noexcept { return grant != nullptr; }
    // Not if it was stopped between its grant and the note of it until its deadline had passed:
    // then the note says nothing of when it was granted.
    [[nodiscard]] bool ever_believed() const noexcept {
        return granted() && (confirmed_until > grant->at || last_act != nullptr);
    }
    // For how long that event believes.
    [[nodiscard]] instant believes_for() const noexcept { return furthest->until - furthest->at; }
    [[nodiscard]] instant stopped_at() const noexcept { return stop != nullptr ? stop->at : never; }
    // Until when its client believed that it owned the lock. Who acted, believed.
    [[nodiscard]] instant believed_until() const noexcept;
};

// From one time to another; the second is `never` while it lasts.
struct window {
    instant from{0};
    instant until = never;
    [[nodiscard]] bool overlaps(instant first, instant last) const noexcept {
        return from <= last && first <= until;
    }
    [[nodiscard]] bool contains(instant at) const noexcept { return from <= at && at < until; }
};
using windows = std::vector<window>;

[[nodiscard]] bool any_overlaps(const windows& all, instant first, instant last) noexcept;
[[nodiscard]] const window* that_contains(const windows& all, instant at) noexcept;

// What befell a worker.
struct surroundings {
    bool near = false;
    windows paused;
    windows silent;
    windows resetting;
    const event* killed = nullptr;
};

// A claim that did what no claim can do: two events that contradict each other.
struct contradiction {
    const event* first;
    const event* second;
    std::string how;
};

// The events of a run, put together by claim, worker and lock. They must be in the order of their
// times.
class stories {
public:
    explicit stories(std::span<const event> events);

    // In the order of their asks.
    [[nodiscard]] const std::vector<story>& all() const noexcept { return all_; }
    // Those of one lock, in the order of their asks.
    [[nodiscard]] const std::map<std::uint32_t, std::vector<const story*>>& by_lock() const {
        return by_lock_;
    }
    [[nodiscard]] const surroundings& around(std::uint32_t worker) const;
    [[nodiscard]] const std::vector<contradiction>& contradictions() const noexcept {
        return contradictions_;
    }

    // Whether between the two times the server may have been told, by somebody else than its
    // client, that this claim is over: by a reset, by an operator, by its own end.
    [[nodiscard]] bool announced(const story& who, instant from, instant until) const;
    // Whether an operator may have ended its owner or a waiter between the two times.
    [[nodiscard]] bool forced(std::uint32_t lock, instant from, instant until) const;
    // Whether the server may have been about to end at some moment between the two times.
    [[nodiscard]] bool server_ending(instant from, instant until) const;
    // Whether the server has heard of this claim's stop when it happened: not if its connection
    // may have been broken for its client alone.
    [[nodiscard]] bool stop_heard(const story& who) const;
    // Whether the server stood still or was down at some moment between the two times.
    [[nodiscard]] bool server_away(instant from, instant until) const;
    // Whether the server was replaced by another process at some moment between the two times. The
    // second: with a wall clock that had gone back meanwhile.
    [[nodiscard]] bool restarted(instant from, instant until) const;
    [[nodiscard]] bool clock_set(instant from, instant until) const;

    [[nodiscard]] std::optional<instant> calm() const noexcept { return calm_; }
    [[nodiscard]] std::optional<instant> finish() const noexcept { return finish_; }

private:
    void tell(const event& what);
    void of_claim(const event& what);
    void stop(story& who, const event& what);
    void contradict(const story& who, const event& what, const char* how);

    std::vector<story> all_;
    std::map<claim_id, std::size_t> place_;
    std::map<std::uint32_t, std::vector<std::size_t>> open_;  // by worker: those without a stop
    std::map<std::uint32_t, std::vector<const story*>> by_lock_;
    std::map<std::uint32_t, surroundings> around_;
    std::map<std::uint32_t, windows> forced_;  // by lock
    windows server_away_;
    windows server_ending_;
    std::vector<instant> restarts_;  // both ends of each
    std::vector<instant> clock_set_;
    std::vector<contradiction> contradictions_;
    std::optional<instant> calm_;
    std::optional<instant> finish_;
};

}  // namespace monolock::history
