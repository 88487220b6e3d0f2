#include <gtest/gtest.h>

#include <set>
#include <string>

#include "simulation/client_history.hpp"
#include "simulation/journal.hpp"
#include "simulation/random.hpp"
#include "simulation/runner.hpp"
#include "simulation/swarm.hpp"
#include "simulation/time.hpp"
#include "simulation/world.hpp"

namespace monolock::simulation {
namespace {

using namespace std::chrono_literals;

std::string trace_of(std::uint64_t seed) {
    tally totals;
    testing::internal::CaptureStdout();
    run({.seed = seed, .trace = true}, totals);
    return testing::internal::GetCapturedStdout();
}

TEST(simulation, a_seed_repeats_itself_byte_for_byte) {
    const std::string once = trace_of(7);
    EXPECT_GT(once.size(), 10'000U);
    EXPECT_EQ(once, trace_of(7));
    EXPECT_NE(once, trace_of(8));
}

TEST(simulation, the_totals_do_not_depend_on_the_threads) {
    const tally alone = run_all({.seed = 100, .seeds = 12});
    const tally together = run_all({.seed = 100, .seeds = 12, .jobs = 3});
    EXPECT_EQ(alone.digest, together.digest);
    EXPECT_EQ(alone.steps, together.steps);
    EXPECT_NE(alone.digest, run_all({.seed = 101, .seeds = 12}).digest);
}

// A shard stood still in the turn in which it had ended an owner for unread replies and promoted
// the next, whose token is of that turn; meanwhile the client let go by itself.
TEST(client_history, an_end_may_be_told_after_its_client_has_left) {
    client_history told;
    told.asks(1, 0, 8s, 1s);
    told.granted(1, 10, 7400ms, 1001ms);
    told.asks(2, 0, 8s, 2s);
    told.waits(2, 2001ms);
    told.confirmed(1, 13s, 7001ms);
    told.asks(3, 1, 8s, 8s);
    told.granted(3, 30, 14s, 8800ms);
    told.ends(1, 10'200ms);
    told.announced(1, 8700ms);
    told.granted(2, 20, 16s, 10'410ms);
    EXPECT_EQ(told.verdict(), "");
}

TEST(client_history, who_is_told_of_an_operator_or_of_the_end_is_told_the_truth) {
    const auto loss_by = [](protocol::error_code code) {
        return detail::claim_loss{.kind = detail::loss_kind::server_error, .code = code};
    };
    const auto by_operator = loss_by(protocol::error_code::closed_by_administrator);
    const auto by_shutdown = loss_by(protocol::error_code::server_shutting_down);
    for (const auto& why : {by_operator, by_shutdown}) {
        client_history told;
        told.server_starts(0s);
        told.operator_ends(1, 1500ms);  // of another lock
        told.operator_has_ended(1, 1500ms);
        told.asks(1, 0, 8s, 1s);
        told.loses(1, why, 2s);
        EXPECT_EQ(told.losses_with_cause(), 1U);
        EXPECT_EQ(told.verdict().substr(0, 14), "told_for_cause");
    }
    client_history told;
    told.server_starts(0s);
    told.asks(1, 0, 8s, 1s);
    told.operator_ends(0, 1500ms);
    told.operator_has_ended(0, 1500ms);
    told.loses(1, by_operator, 2s);
    told.connects(2, 3s);
    told.sends_away(4s);
    told.server_ends(5s);
    told.server_starts(6s);
    told.asks(2, 0, 8s, 7s);  // its process stood still
    told.loses(2, by_shutdown, 8s);
    told.asks(3, 0, 8s, 9s);
    told.loses(3, loss_by(protocol::error_code::not_authorized), 10s);
    EXPECT_EQ(told.losses_with_cause(), 2U);
    EXPECT_EQ(told.verdict(), "");
}

TEST(simulation, the_standard_swarm_is_what_it_says) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        random_source random{seed};
        const swarm plan = draw_swarm(random, swarm_kind::standard);
        EXPECT_EQ(plan.clients, 8);
        EXPECT_EQ(plan.locks, 3);
        EXPECT_EQ(plan.lease_min, 50ms);
        EXPECT_EQ(plan.lease_max, 10s);
    }
    EXPECT_EQ(run_all({.seeds = 3, .kind = swarm_kind::standard}).seeds, 3U);
}

TEST(simulation, a_failure_says_how_to_see_the_same_world_again) {
    EXPECT_EQ(command_of({.seed = 7}), "simulate --seed 7 --seeds 1 --trace");
    EXPECT_EQ(command_of({.seed = 7, .kind = swarm_kind::standard}),
              "simulate --seed 7 --seeds 1 --swarm standard --trace");
}

TEST(simulation, every_fault_and_every_ending_occurs) {
    tally totals;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        run({.seed = seed}, totals);
    }
    for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
        EXPECT_GT(totals.faults[kind], 0U) << to_string(static_cast<fault>(kind));
    }
    for (const std::uint64_t ends : totals.ends) {
        EXPECT_GT(ends, 0U);
    }
    EXPECT_GT(totals.beliefs_outlived, 0U);
    EXPECT_GT(totals.stale_writes_refused, 0U);
    EXPECT_GT(totals.server_stops, 0U);
    EXPECT_GT(totals.client_stops, 0U);
    EXPECT_GT(totals.short_writes, 0U);
    EXPECT_GT(totals.spikes, 0U);
    EXPECT_GT(totals.runs_over_records, 0U);
    EXPECT_LT(totals.runs_over_records, totals.seeds);
    EXPECT_GT(totals.records_half_sent, 0U);
    EXPECT_GT(totals.reads_held_back, 0U);
    EXPECT_GT(totals.alerts_read, 0U);
    EXPECT_GT(totals.denials, 0U);
    EXPECT_GT(totals.sweeps_that_revoked, 0U);
    EXPECT_GE(totals.quiet_claims, 8 * totals.seeds);
    EXPECT_GT(totals.losses_with_cause, 0U);
    EXPECT_GT(totals.retries, 0U);
    EXPECT_GT(totals.grants_refused, 0U);
    EXPECT_GT(totals.sent_away, 0U);
    EXPECT_GT(totals.runs_with_shards, 0U);
    EXPECT_LT(totals.runs_with_shards, totals.seeds);
    EXPECT_GT(totals.moves, 0U);
    EXPECT_GT(totals.accept_pauses, totals.accept_failures);
    EXPECT_GT(totals.accept_failures, 0U);
    EXPECT_GT(totals.listings, 0U);
    EXPECT_GT(totals.releases_by_operator, 0U);
    EXPECT_GT(totals.stale_releases, 0U);
    EXPECT_GT(totals.kicks, 0U);
    EXPECT_GT(totals.operator_gave_up, 0U);
}

TEST(simulation, a_clock_and_its_inverse_agree) {
    for (const std::int64_t rate : {900, 997, 1000, 1003, 1100}) {
        const drifting_clock clock{123'456'789ns, rate};
        for (const sim_time real : {0ns, 1ns, 999ns, 1'000ns, 123'456'789'012'345ns}) {
            const sim_time back = clock.when(clock.at(real));
            EXPECT_LE(back, real);
            EXPECT_EQ(clock.at(back), clock.at(real));
        }
        EXPECT_GE(clock.at(clock.when(1h)), 1h);
        EXPECT_LT(clock.at(clock.when(1h) - 1ns), 1h);
    }
}

TEST(simulation, chance_stays_within_its_bounds) {
    random_source random{42};
    std::set<std::int64_t> seen;
    for (int draw = 0; draw < 10'000; ++draw) {
        const std::int64_t value = random.spread(50, 10'000);
        EXPECT_GE(value, 50);
        EXPECT_LE(value, 10'000);
        seen.insert(random.between(3, 5));
    }
    EXPECT_EQ(seen, (std::set<std::int64_t>{3, 4, 5}));
    EXPECT_EQ(random.spread(7, 7), 7);
}

}  // namespace
}  // namespace monolock::simulation
