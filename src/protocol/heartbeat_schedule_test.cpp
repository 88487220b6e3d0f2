#include "protocol/heartbeat_schedule.hpp"

#include <gtest/gtest.h>

#include "vectors/vector_file.hpp"

namespace monolock::protocol {
namespace {

using std::chrono::milliseconds;

TEST(heartbeat_schedule, follows_the_vectors) {
    for (const auto& vector : vectors::load("heartbeats.json", "schedule")) {
        const milliseconds lease{vector["lease_ms"].get<std::int64_t>()};
        const nanoseconds smoothed{vector["smoothed_rtt_ns"].get<std::int64_t>()};
        EXPECT_EQ(base_interval(lease).count(), vector["base_ns"]) << vector["about"];
        EXPECT_EQ(client_timeout(lease).count(), vector["timeout_ns"]) << vector["about"];
        EXPECT_EQ(heartbeat_interval(lease, smoothed).count(), vector["interval_ns"])
            << vector["about"];
    }
}

TEST(heartbeat_schedule, smooths_round_trips_as_the_vectors_say) {
    for (const auto& vector : vectors::load("heartbeats.json", "round_trips")) {
        rtt_estimate estimate;
        EXPECT_EQ(estimate.smoothed(), nanoseconds{0}) << "before the first sample";
        for (std::size_t at = 0; at < vector["samples_ns"].size(); ++at) {
            estimate.add(nanoseconds{vector["samples_ns"][at].get<std::int64_t>()});
            EXPECT_EQ(estimate.smoothed().count(), vector["smoothed_ns"][at])
                << vector["about"] << ", sample " << at;
        }
    }
}

// What the client's safety rests on, over all leases and round trips that it survives: a beat sent
// on schedule and answered within 0.4 × lease arrives before the client gives up.
TEST(heartbeat_schedule, a_round_trip_of_two_fifths_of_the_lease_is_survived) {
    for (std::int64_t lease_ms = 1; lease_ms <= lease_max.count();
         lease_ms = lease_ms * 7 / 3 + 1) {
        const milliseconds lease{lease_ms};
        const nanoseconds worst = nanoseconds{lease} / 5 * 2;
        for (const nanoseconds smoothed : {nanoseconds{0}, worst / 3, worst}) {
            const nanoseconds wait = std::max(heartbeat_interval(lease, smoothed), worst);
            EXPECT_LE(wait + worst, client_timeout(lease)) << lease_ms;
        }
    }
}

TEST(heartbeat_schedule, the_interval_is_never_zero_nor_above_a_quarter_of_the_lease) {
    for (std::int64_t lease_ms = 1; lease_ms <= lease_max.count();
         lease_ms = lease_ms * 7 / 3 + 1) {
        const milliseconds lease{lease_ms};
        for (std::int64_t rtt_ns = 0; rtt_ns < 8'000'000'000'000; rtt_ns = rtt_ns * 11 + 1) {
            const nanoseconds interval = heartbeat_interval(lease, nanoseconds{rtt_ns});
            EXPECT_GT(interval, nanoseconds{0});
            EXPECT_LE(interval * 4, nanoseconds{lease});
        }
    }
}

}  // namespace
}  // namespace monolock::protocol
