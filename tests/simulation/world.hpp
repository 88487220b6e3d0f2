#pragma once

#include <cstdint>

#include "simulation/swarm.hpp"

namespace monolock::simulation {

// One run: a server, its clients, the network between them, and what happens to them, all drawn
// from the seed. First a safety phase with faults, then a liveness phase without. Ends the program
// with a report if a rule is broken.
void run(const run_request& what, tally& totals);

}  // namespace monolock::simulation
