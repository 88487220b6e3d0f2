#include "load/latencies.hpp"

#include <gtest/gtest.h>

namespace monolock::bench {
namespace {

using std::chrono::nanoseconds;

latencies of(std::initializer_list<std::int64_t> values) {
    latencies made;
    for (const auto value : values) {
        made.add(nanoseconds{value});
    }
    return made;
}

TEST(latencies, percentile_is_a_value_that_occurred) {
    auto ten = of({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
    EXPECT_EQ(ten.percentile(0), nanoseconds{1});
    EXPECT_EQ(ten.percentile(0.5), nanoseconds{5});
    EXPECT_EQ(ten.percentile(0.51), nanoseconds{6});
    EXPECT_EQ(ten.percentile(1), nanoseconds{10});
    EXPECT_EQ(latencies{}.percentile(0.5), nanoseconds{0});
}

TEST(latencies, small_values_have_buckets_of_their_own) {
    const auto buckets = of({2047, 0, 2046, 2047}).histogram();
    ASSERT_EQ(buckets.size(), 3U);
    EXPECT_EQ(buckets[0].highest, nanoseconds{0});
    EXPECT_EQ(buckets[1].highest, nanoseconds{2046});
    EXPECT_EQ(buckets[2].highest, nanoseconds{2047});
    EXPECT_EQ(buckets[2].count, 2U);
}

TEST(latencies, a_bucket_of_the_first_doubling_holds_two_values) {
    const auto buckets = of({2048, 2049, 2050}).histogram();
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].highest, nanoseconds{2049});
    EXPECT_EQ(buckets[0].count, 2U);
    EXPECT_EQ(buckets[1].highest, nanoseconds{2051});
}

TEST(latencies, buckets_are_as_wide_as_a_thousandth_at_the_most) {
    for (std::int64_t value = 1; value < 100'000'000'000; value = value * 3 + 1) {
        const auto highest = of({value}).histogram().front().highest.count();
        EXPECT_GE(highest, value);
        EXPECT_LE(highest - value, value / 1000) << value;
    }
}

TEST(latencies, are_added_up) {
    auto all = of({1, 2});
    all.add(of({2, 3}));
    EXPECT_EQ(all.count(), 4U);
    EXPECT_EQ(all.histogram().size(), 3U);
}

}  // namespace
}  // namespace monolock::bench
