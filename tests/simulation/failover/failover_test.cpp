#include <gtest/gtest.h>

#include <string>

#include "simulation/failover/swarm.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation::failover {
namespace {

std::string trace_of(std::uint64_t seed) {
    tally totals;
    testing::internal::CaptureStdout();
    run({.seed = seed, .trace = true}, totals);
    return testing::internal::GetCapturedStdout();
}

TEST(failover_simulation, a_seed_repeats_itself_byte_for_byte) {
    const std::string once = trace_of(7);
    EXPECT_GT(once.size(), 10'000U);
    EXPECT_EQ(once, trace_of(7));
    EXPECT_NE(once, trace_of(8));
}

TEST(failover_simulation, every_fault_and_every_ending_occurs) {
    tally totals;
    for (std::uint64_t seed = 361; seed <= 420; ++seed) {
        run({.seed = seed}, totals);
    }
    for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
        EXPECT_GT(totals.faults.at(kind), 0U) << to_string(static_cast<fault>(kind));
    }
    for (const std::uint64_t losses : totals.losses) {
        EXPECT_GT(losses, 0U);
    }
    EXPECT_GT(totals.failovers, totals.before_a_ttl);
    EXPECT_GT(totals.before_a_ttl, totals.at_once);
    EXPECT_GT(totals.at_once, 0U);
    EXPECT_GT(totals.refused, 0U);
    EXPECT_GT(totals.recovered, 0U);
    EXPECT_GT(totals.unanswered, 0U);
    EXPECT_GT(totals.applied_late, 0U);
    EXPECT_GT(totals.beliefs_outlived, 0U);
    EXPECT_GT(totals.raises_awaited, 0U);
    EXPECT_GT(totals.leases_awaited, 0U);
    EXPECT_GT(totals.lowered, 0U);
    EXPECT_GT(totals.stops, 0U);
}

}  // namespace
}  // namespace monolock::simulation::failover
