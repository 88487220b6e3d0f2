#include <algorithm>
#include <chrono>

#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/pacing.hpp"
#include "in_memory/stage.hpp"

namespace monolock::bench::in_memory {

figures run_beating(const beating_options& options) {
    network net{options.sessions};
    const stage server{net, options.shards};
    clients all{net};
    all.claim_all(0, options.sessions, options.lease);
    const auto order = clients::shuffled(options.sessions);
    all.beat_all(order);

    const auto interval = options.lease / 4;
    const auto rounds = std::max<std::size_t>(
        1, static_cast<std::size_t>(options.duration.count() / interval.count()));
    static_cast<void>(net.take_longest_turn());
    const auto cpu_before = server.cpu_time();
    const time_point began = clock::now();
    std::chrono::nanoseconds latest{0};
    std::size_t unanswered = 0;  // when the next heartbeat was due
    for (std::size_t round = 0; round < rounds; ++round) {
        latest = std::max(latest, pace(net, options.sessions, interval, [&](std::size_t place) {
                              const std::size_t who = order[place];
                              unanswered +=
                                  round > 0 && all.take(who) != clients::answer::acquired ? 1U : 0U;
                              all.beat(who);
                          }));
    }
    const auto lasted = clock::now() - began;
    const auto cpu = server.cpu_time() - cpu_before;
    const auto heartbeats = static_cast<double>(rounds * options.sessions);
    return {{"sessions", options.sessions},
            {"shards", options.shards},
            {"lease_ms", options.lease.count()},
            {"seconds", std::chrono::duration<double>(lasted).count()},
            {"heartbeats", rounds * options.sessions},
            {"unanswered", unanswered},
            {"expired", server.ended(core::end_reason::expired)},
            {"sessions_left", server.sessions()},
            {"client_latest_ms", std::chrono::duration<double, std::milli>(latest).count()},
            {"longest_turn_ms",
             std::chrono::duration<double, std::milli>(net.take_longest_turn()).count()},
            {"server_busy", std::chrono::duration<double>(cpu) / lasted},
            {"cpu_ns", static_cast<double>(cpu.count()) / heartbeats}};
}

}  // namespace monolock::bench::in_memory
