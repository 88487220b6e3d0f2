#pragma once

#include <chrono>
#include <cstdint>

#include "simulation/swarm.hpp"

namespace monolock::simulation {

struct run_plan {
    std::uint64_t seed = 1;  // the first
    std::uint64_t seeds = 2000;
    swarm_kind kind = swarm_kind::drawn;
    bool trace = false;  // then one thread whatever `jobs` says
    unsigned jobs = 1;   // threads, at least one
    // No seed begins after that time, if it is above zero.
    std::chrono::seconds time_max{0};
    // How long from one line on stderr to the next that says how far it is; zero: none.
    std::chrono::seconds progress{0};
};

// Runs the seeds from the first on, each once. What they add up to does not depend on the number of
// threads. At a broken rule the program ends with a report.
[[nodiscard]] tally run_all(const run_plan& plan);

}  // namespace monolock::simulation
