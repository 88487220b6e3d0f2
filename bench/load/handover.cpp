#include <deque>

#include "load/modes.hpp"
#include "load/poller.hpp"

namespace monolock::bench {
namespace {

void wait_for_acquired(poller& arrivals, connection& next) {
    // Waiting in epoll and not in recv(): so does the permanent reader of a client.
    do {
        static_cast<void>(arrivals.wait());
    } while (!next.take_acquired());
}

}  // namespace

timed_result run_handover(const target& to, const handover_options& options) {
    const auto name = lock_name(0);
    poller arrivals;
    std::size_t serial = 0;
    auto owner = own(to, serial++, name);
    std::deque<connection> queue;
    const auto join_queue = [&] {
        queue.push_back(queue_up(to, serial, name));
        arrivals.add(queue.back().fd(), serial++);
    };
    for (std::size_t i = 0; i < options.waiters; ++i) {
        join_queue();
    }

    timed_result result;
    const auto hand_over = [&](std::size_t rounds) {
        for (std::size_t i = 0; i < rounds; ++i) {
            const auto closed = clock::now();
            owner.close();
            wait_for_acquired(arrivals, queue.front());
            result.latency.add(clock::now() - closed);
            owner = std::move(queue.front());
            queue.pop_front();
            join_queue();
        }
    };
    hand_over(options.waiters);
    result.latency.clear();

    const auto cpu_before = to.process.settled_cpu_time();
    const auto started = clock::now();
    hand_over(options.rounds);
    result.elapsed = clock::now() - started;
    result.server_cpu = to.process.settled_cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
