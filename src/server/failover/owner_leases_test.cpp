#include "server/failover/owner_leases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <set>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(owner_leases, are_none_where_nobody_owned) {
    owner_leases leases;
    EXPECT_EQ(leases.take_peak(), 0ms);
}

TEST(owner_leases, tell_once_of_who_came_and_went_and_again_and_again_of_who_is_there) {
    owner_leases leases;
    leases.add(1ms);
    leases.add(milliseconds{0xFFFFFFFF});
    leases.add(10s);
    leases.remove(milliseconds{0xFFFFFFFF});
    EXPECT_EQ(leases.take_peak(), milliseconds{0xFFFFFFFF});
    EXPECT_EQ(leases.take_peak(), 10s);
    EXPECT_EQ(leases.take_peak(), 10s);
    leases.remove(10s);
    EXPECT_EQ(leases.take_peak(), 10s) << "it was there since the last time";
    EXPECT_EQ(leases.take_peak(), 1ms);
}

// Whoever comes and goes: never too short, too long by less than twice.
TEST(owner_leases, are_never_too_short) {
    std::mt19937_64 random{4711};  // NOLINT: the same each time
    owner_leases leases;
    std::multiset<milliseconds> owners;
    milliseconds peak = 0ms;
    for (int step = 0; step < 20'000; ++step) {
        if (owners.empty() || random() % 2 == 0) {
            const milliseconds lease{
                1 + static_cast<std::int64_t>(random() % (1ULL << (random() % 32)))};
            owners.insert(lease);
            leases.add(lease);
            peak = std::max(peak, lease);
        } else {
            const auto which =
                std::next(owners.begin(), static_cast<std::ptrdiff_t>(random() % owners.size()));
            leases.remove(*which);
            owners.erase(which);
        }
        if (random() % 4 == 0) {
            const milliseconds said = leases.take_peak();
            ASSERT_GE(said, peak);
            ASSERT_TRUE(peak == 0ms ? said == 0ms : said < 2 * peak);
            peak = owners.empty() ? 0ms : *owners.rbegin();
        }
    }
}

}  // namespace
}  // namespace monolock::server
