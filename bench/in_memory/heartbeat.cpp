#include <algorithm>
#include <chrono>
#include <vector>

#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/stage.hpp"

namespace monolock::bench::in_memory {

namespace {

template <class Server>
std::vector<double> cpu_of_slices(network& net, const Server& server,
                                  const heartbeat_options& options) {
    clients all{net};
    all.claim_all(0, options.sessions, long_lease);
    const auto order = clients::shuffled(options.sessions);
    const std::size_t rounds =
        (options.slice_heartbeats_min + options.sessions - 1) / options.sessions;
    const auto slice = [&] {
        const auto before = server.cpu_time();
        for (std::size_t round = 0; round < rounds; ++round) {
            all.beat_all(order);
        }
        return static_cast<double>((server.cpu_time() - before).count()) /
               static_cast<double>(rounds * options.sessions);
    };
    slice();  // warms up
    std::vector<double> cpu(options.slices);
    std::generate(cpu.begin(), cpu.end(), slice);
    std::sort(cpu.begin(), cpu.end());
    return cpu;
}

}  // namespace

figures run_heartbeat(const heartbeat_options& options) {
    network net{options.sessions};
    std::vector<double> cpu;
    if (options.floor) {
        const floor_stage server{net};
        cpu = cpu_of_slices(net, server, options);
    } else {
        const stage server{net, options.shards};
        cpu = cpu_of_slices(net, server, options);
    }
    return {{"server", options.floor ? "floor" : "monolock"},
            {"sessions", options.sessions},
            {"shards", options.floor ? 1 : options.shards},
            {"cpu_ns", cpu[cpu.size() / 2]},
            {"cpu_min_ns", cpu.front()},
            {"cpu_max_ns", cpu.back()}};
}

}  // namespace monolock::bench::in_memory
