#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "load/attempt.hpp"
#include "load/modes.hpp"
#include "load/poller.hpp"

namespace monolock::bench {

// Many clients in one thread, each with a lock of its own, that do what one of the library does:
// connect (within 5 s, over TLS the handshake within another 5 s), ACQUIRE, a heartbeat each
// quarter of the lease with at most one in flight, and the end after 0.8 leases without an answer.
// A failed attempt is repeated, 100 ms later at first and then after twice the last delay, up to
// 5 s, each time between half and one and a half of that. A claim that was lost is made anew at
// once, or not at all.
//
// Heartbeats are an open loop: they are due at times that the answers do not move, and a latency
// counts from then.
//
// A client of the library has a thread to itself, and here thousands share one. So that none loses
// its lock because others shake hands, TLS handshakes take their steps one at a time, when nothing
// else is due.
class crowd {
public:
    using clock = std::chrono::steady_clock;
    using nanoseconds = std::chrono::nanoseconds;

    crowd(target to, const crowd_options& options);

    // All clients begin at once. Returns when the last has its connect() behind it.
    void start_all();
    // One after the other, each after the one before it owns its lock; then their heartbeats are
    // spread evenly over a quarter of the lease. Throws measurement_error if one does not get
    // there.
    void start_in_turn();

    // Goes on until `done` says so; it is asked after each round of events and after at most 100
    // ms.
    void run_until(const std::function<bool()>& done);

    [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }
    [[nodiscard]] std::size_t owning() const noexcept { return owning_; }
    [[nodiscard]] bool all_own() const noexcept { return owning_ == clients_.size(); }

    // What happened since the last call.
    [[nodiscard]] crowd_figures take_figures();

private:
    struct client {
        attempt claim;
        clock::time_point begun;      // the first attempt at this claim
        clock::time_point alarm;      // of its one timer
        clock::time_point due;        // the heartbeat in flight, or the next one
        clock::time_point sent;       // the last message
        clock::time_point confirmed;  // when the last message that was answered was sent
        std::uint32_t failures = 0;   // in a row
        bool in_flight = false;
        bool step_due = false;  // of its handshake
    };
    struct timer {
        clock::time_point at;
        std::size_t who;
        friend bool operator>(const timer& one, const timer& other) noexcept {
            return one.at > other.at;
        }
    };

    void step();
    void take_events(nanoseconds nap);
    void ring_alarms();
    void take_handshake_step();
    void begin(std::size_t who);
    void try_to_claim(std::size_t who);
    void go_on(std::size_t who, std::uint32_t events);
    void note_progress(std::size_t who, attempt::stage before, clock::time_point now);
    void note_answer(std::size_t who, clock::time_point now);
    void note_end(std::size_t who, attempt::stage before, std::size_t endings::*how);
    void ring(std::size_t who);
    [[nodiscard]] bool answered_meanwhile(std::size_t who);
    void beat(std::size_t who);
    void arm(std::size_t who, clock::time_point at);
    void drop_stale_timers();

    target to_;
    crowd_options options_;
    nanoseconds interval_;
    nanoseconds silence_max_;
    poller poller_;
    std::vector<client> clients_;
    std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
    std::vector<std::size_t> handshakes_;  // who has a step due, or had
    std::size_t owning_ = 0;
    std::minstd_rand jitter_;
    crowd_figures figures_;
};

}  // namespace monolock::bench
