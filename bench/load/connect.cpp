#include <utility>

#include "load/modes.hpp"
#include "load/poller.hpp"

namespace monolock::bench {
namespace {

using std::chrono::nanoseconds;

// Claims that follow one another in a number of slots.
//
// The client closes as one of the library does (close_notify, FIN) and bears the TIME_WAIT. To
// close with a reset (SO_LINGER of zero) would spare the ports, but it would measure another
// server: one that sees an error instead of the end of the stream and whose own close has nothing
// to send.
class claim_chain {
public:
    claim_chain(target to, std::size_t slots) : to_{std::move(to)}, slots_(slots) {}

    void run(nanoseconds duration, latencies& into) {
        const auto end = clock::now() + duration;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            start(i);
        }
        for (auto running = slots_.size(); running > 0;) {
            for (const auto& event : poller_.wait()) {
                const auto index = poller::index_of(event);
                auto& current = slots_[index];
                if (!current.claim.take_acquired()) {
                    continue;
                }
                const auto now = clock::now();
                into.add(now - current.started);
                current.claim.close();
                if (now < end) {
                    start(index);
                } else {
                    --running;
                }
            }
        }
    }

private:
    struct slot {
        connection claim;
        clock::time_point started;
    };

    void start(std::size_t index) {
        slots_[index].started = clock::now();
        slots_[index].claim = claim(to_, serial_, lock_name(serial_));
        ++serial_;
        poller_.add(slots_[index].claim.fd(), index);
    }

    target to_;
    poller poller_;
    std::vector<slot> slots_;
    std::size_t serial_ = 0;
};

}  // namespace

timed_result run_connect(const target& to, const connect_options& options) {
    claim_chain chain(to, options.concurrent);
    timed_result result;
    chain.run(options.warm_up, result.latency);
    result.latency.clear();

    const auto cpu_before = to.process.settled_cpu_time();
    const auto started = clock::now();
    chain.run(options.duration, result.latency);
    result.elapsed = clock::now() - started;
    result.server_cpu = to.process.settled_cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
