#include <optional>
#include <utility>
#include <vector>

#include "load/modes.hpp"
#include "load/poller.hpp"

namespace monolock::bench {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t at_a_time_max = 256;  // of those that come at a rate

// Claims in a number of slots: made, granted, closed.
//
// The client closes as one of the library does (close_notify, FIN) and bears the TIME_WAIT. To
// close with a reset (SO_LINGER of zero) would spare the ports, but it would measure another
// server: one that sees an error instead of the end of the stream and whose own close has nothing
// to send.
class claim_slots {
public:
    claim_slots(target to, std::size_t count) : to_{std::move(to)}, slots_(count) {
        for (std::size_t i = count; i > 0; --i) {
            idle_.push_back(i - 1);
        }
    }

    [[nodiscard]] bool any_idle() const noexcept { return !idle_.empty(); }
    [[nodiscard]] bool all_idle() const noexcept { return idle_.size() == slots_.size(); }

    void start(clock::time_point due) {
        const auto index = idle_.back();
        idle_.pop_back();
        slots_[index].due = due;
        slots_[index].claim = claim(to_, serial_, lock_name(serial_));
        ++serial_;
        poller_.add(slots_[index].claim.fd(), index);
    }

    // Takes the grants that are there, or come within `patience`, and closes.
    void take_grants(latencies& into, std::optional<nanoseconds> patience = std::nullopt) {
        for (const auto& event : poller_.wait(patience)) {
            const auto index = poller::index_of(event);
            auto& current = slots_[index];
            if (current.claim.take_acquired()) {
                into.add(clock::now() - current.due);
                current.claim.close();
                idle_.push_back(index);
            }
        }
    }

    void drain(latencies& into) {
        while (!all_idle()) {
            take_grants(into);
        }
    }

private:
    struct slot {
        connection claim;
        clock::time_point due;
    };

    target to_;
    poller poller_;
    std::vector<slot> slots_;
    std::vector<std::size_t> idle_;
    std::size_t serial_ = 0;
};

void claim_in_closed_loop(claim_slots& slots, nanoseconds duration, latencies& into) {
    const auto end = clock::now() + duration;
    for (auto now = clock::now(); now < end; now = clock::now()) {
        while (slots.any_idle()) {
            slots.start(clock::now());
        }
        slots.take_grants(into);
    }
    slots.drain(into);
}

void claim_at_rate(claim_slots& slots, std::size_t rate, nanoseconds duration, latencies& into) {
    const nanoseconds interval{nanoseconds{std::chrono::seconds{1}} /
                               static_cast<std::int64_t>(rate)};
    auto due = clock::now();
    const auto end = due + duration;
    while (due < end) {
        for (; due < end && due <= clock::now() && slots.any_idle(); due += interval) {
            slots.start(due);
        }
        slots.take_grants(into, due - clock::now());
    }
    slots.drain(into);
}

}  // namespace

timed_result run_connect(const target& to, const connect_options& options) {
    claim_slots slots(to, options.rate > 0 ? at_a_time_max : options.concurrent);
    timed_result result;
    const auto run = [&](nanoseconds duration) {
        if (options.rate > 0) {
            claim_at_rate(slots, options.rate, duration, result.latency);
        } else {
            claim_in_closed_loop(slots, duration, result.latency);
        }
    };
    run(options.warm_up);
    result.latency.clear();

    const auto cpu_before = to.process.settled_cpu_time();
    const auto started = clock::now();
    run(options.duration);
    result.elapsed = clock::now() - started;
    result.server_cpu = to.process.settled_cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
