#pragma once

#include <cstdint>

#include "simulation/event_queue.hpp"
#include "simulation/journal.hpp"
#include "simulation/random.hpp"
#include "simulation/swarm.hpp"

namespace monolock::simulation {

// What everything in one run shares.
struct context {
    context(std::uint64_t seed, tally& totals, bool trace)
        : random{seed}, plan{draw_swarm(random)}, counts{&totals}, log{seed, events, trace} {}

    void count(fault kind) { ++counts->faults[static_cast<std::size_t>(kind)]; }

    random_source random;
    event_queue events;
    swarm plan;
    tally* counts;
    journal log;
};

}  // namespace monolock::simulation
