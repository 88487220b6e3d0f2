#include "telemetry/duration_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(duration_histogram, of_nothing) {
    const duration_histogram none;
    EXPECT_EQ(none.count(), 0U);
    EXPECT_EQ(none.percentile(0.5), 0ms);
    EXPECT_EQ(none.largest(), 0ms);
}

TEST(duration_histogram, small_ones_are_exact) {
    duration_histogram some;
    for (int value = 0; value < 32; ++value) {
        some.add(std::chrono::milliseconds{value});
    }
    EXPECT_EQ(some.percentile(0.5), 15ms);
    EXPECT_EQ(some.percentile(0), 0ms);
    EXPECT_EQ(some.percentile(1), 31ms);
}

TEST(duration_histogram, one_is_itself_at_every_percentile) {
    for (const auto value :
         {0ms, 31ms, 32ms, 33ms, 1'000'003ms, std::chrono::milliseconds::max()}) {
        duration_histogram one;
        one.add(value);
        EXPECT_EQ(one.percentile(0), value);
        EXPECT_EQ(one.percentile(0.5), value);
        EXPECT_EQ(one.percentile(0.99), value);
        EXPECT_EQ(one.largest(), value);
    }
}

TEST(duration_histogram, percentiles_are_a_sixteenth_too_large_at_the_most_and_never_too_small) {
    std::mt19937_64 random{7};
    std::lognormal_distribution<> spread{6, 3};
    std::vector<std::int64_t> values;
    duration_histogram all;
    duration_histogram half;
    for (int count = 0; count < 10'001; ++count) {
        values.push_back(std::llround(spread(random)));
        (count % 2 == 0 ? all : half).add(std::chrono::milliseconds{values.back()});
    }
    all.add(half);
    std::ranges::sort(values);
    ASSERT_EQ(all.count(), values.size());
    EXPECT_EQ(all.largest().count(), values.back());
    for (const double share : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
        const auto rank =
            static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
        const std::int64_t exact = values[rank - 1];
        EXPECT_GE(all.percentile(share).count(), exact);
        EXPECT_LE(all.percentile(share).count(), exact + exact / 16) << share;
    }
}

}  // namespace
}  // namespace monolock::telemetry
