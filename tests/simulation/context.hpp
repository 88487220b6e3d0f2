#pragma once

#include <cstdint>

#include "simulation/client_history.hpp"
#include "simulation/event_queue.hpp"
#include "simulation/journal.hpp"
#include "simulation/random.hpp"
#include "simulation/swarm.hpp"

namespace monolock::simulation {

// What everything in one run shares.
struct context {
    context(const run_request& what, tally& totals)
        : random{what.seed},
          plan{draw_swarm(random, what.kind)},
          counts{&totals},
          log{what, events} {}

    void count(fault kind) { ++counts->faults[static_cast<std::size_t>(kind)]; }

    random_source random;
    event_queue events;
    swarm plan;
    tally* counts;
    journal log;
    client_history told;  // by the honest clients
};

}  // namespace monolock::simulation
