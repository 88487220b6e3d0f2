#include <algorithm>
#include <deque>

#include "load/modes.hpp"
#include "load/poller.hpp"
#include "protocol/frames.hpp"

namespace monolock::bench {
namespace {

using std::chrono::nanoseconds;

// Sessions, those of them that are idle in the order in which they became so, and the heartbeats in
// flight. At most one is in flight for a session, as the protocol asks of a client.
class beating_sessions {
public:
    beating_sessions(const target& to, std::size_t count) {
        sessions_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            sessions_.push_back({.claim = own(to, i, lock_name(i)), .due = {}});
            poller_.add(sessions_.back().claim.fd(), i);
            idle_.push_back(i);
        }
    }

    [[nodiscard]] bool any_idle() const noexcept { return !idle_.empty(); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return sessions_.size() - idle_.size(); }

    // Beats for the session that has been idle longest.
    void beat(clock::time_point due) {
        auto& next = sessions_[idle_.front()];
        idle_.pop_front();
        next.due = due;
        next.claim.send(protocol::heartbeat_frame);
    }

    // Takes the answers that are there, or comes within `patience`.
    void take_answers(latencies& into, std::optional<nanoseconds> patience = std::nullopt) {
        for (const auto& event : poller_.wait(patience)) {
            const auto index = poller::index_of(event);
            if (sessions_[index].claim.take_acquired()) {
                into.add(clock::now() - sessions_[index].due);
                idle_.push_back(index);
            }
        }
    }

    void drain(latencies& into) {
        while (in_flight() > 0) {
            take_answers(into);
        }
    }

private:
    struct session {
        connection claim;
        clock::time_point due;
    };

    poller poller_;
    std::vector<session> sessions_;
    std::deque<std::size_t> idle_;
};

void beat_in_closed_loop(beating_sessions& sessions, std::size_t outstanding, nanoseconds duration,
                         latencies& into) {
    const auto end = clock::now() + duration;
    for (auto now = clock::now(); now < end; now = clock::now()) {
        while (sessions.in_flight() < outstanding && sessions.any_idle()) {
            sessions.beat(clock::now());
        }
        sessions.take_answers(into);
    }
    sessions.drain(into);
}

void beat_at_rate(beating_sessions& sessions, std::size_t rate, nanoseconds duration,
                  latencies& into) {
    const nanoseconds interval{std::chrono::nanoseconds{std::chrono::seconds{1}} /
                               static_cast<std::int64_t>(rate)};
    auto due = clock::now();
    const auto end = due + duration;
    while (due < end) {
        for (; due <= clock::now() && sessions.any_idle(); due += interval) {
            sessions.beat(due);
        }
        sessions.take_answers(into, due - clock::now());
    }
    sessions.drain(into);
}

void beat(beating_sessions& sessions, const heartbeat_options& options, nanoseconds duration,
          latencies& into) {
    if (options.rate > 0) {
        beat_at_rate(sessions, options.rate, duration, into);
    } else {
        beat_in_closed_loop(sessions, options.outstanding, duration, into);
    }
}

}  // namespace

timed_result run_heartbeat(const target& to, const heartbeat_options& options) {
    beating_sessions sessions(to, options.connections);
    timed_result result;
    beat(sessions, options, options.warm_up, result.latency);
    result.latency.clear();

    const auto cpu_time = [&] {
        return options.latency_only ? nanoseconds{0} : to.process.settled_cpu_time();
    };
    const auto cpu_before = cpu_time();
    const auto started = clock::now();
    beat(sessions, options, options.duration, result.latency);
    result.elapsed = clock::now() - started;
    result.server_cpu = cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
