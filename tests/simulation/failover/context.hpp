#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "simulation/event_queue.hpp"
#include "simulation/failover/rule.hpp"
#include "simulation/failover/swarm.hpp"
#include "simulation/journal.hpp"
#include "simulation/random.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation::failover {

// What everything in one run shares.
struct context {
    context(const run_request& what, tally& totals)
        : random{what.seed},
          plan{draw_swarm(random)},
          counts{&totals},
          log{{.seed = what.seed, .trace = what.trace, .program = "simulate_failover"}, events} {}

    // Of one machine.
    [[nodiscard]] drifting_clock draw_clock() {
        const std::int64_t drift = random.drift(plan.drift_max, plan.drift_at_limits);
        return {
            random.between(sim_time{std::chrono::seconds{1}}, sim_time{std::chrono::seconds{1000}}),
            1000 + drift};
    }

    void count(fault kind) { ++counts->faults.at(static_cast<std::size_t>(kind)); }
    [[noreturn]] void fail(rule broken, const std::string& how) const {
        log.fail(name_of(broken), how);
    }

    random_source random;
    event_queue events;
    swarm plan;
    tally* counts;
    journal log;
};

}  // namespace monolock::simulation::failover
