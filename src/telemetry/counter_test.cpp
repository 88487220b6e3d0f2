#include "telemetry/counter.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

constexpr bucket_bounds<2> bounds{1ms, 1s};
using counts = std::array<std::uint64_t, 3>;

TEST(histogram, a_bound_belongs_to_its_own_bucket) {
    histogram<2> subject{bounds};
    subject.add(0ns);
    subject.add(1ms);
    subject.add(1ms + 1ns);
    subject.add(1s);
    subject.add(1s + 1ns);
    subject.add(24h);
    EXPECT_EQ(subject.read().counts, (counts{2, 2, 2}));
    EXPECT_EQ(subject.read().count(), 6U);
}

TEST(histogram, sums_are_exact_beyond_what_nanoseconds_can_count) {
    histogram<2> subject{bounds};
    constexpr std::chrono::hours century{24 * 36525};
    for (int times = 0; times < 12; ++times) {
        subject.add(century);
    }
    subject.add(250ms);
    EXPECT_DOUBLE_EQ(subject.read().sum.count(), 12.0 * 100 * 365.25 * 86400 + 0.25);
}

TEST(histogram, readings_add_up) {
    histogram<2> left{bounds};
    histogram<2> right{bounds};
    left.add(500us);
    right.add(2s);
    right.add(500ms);
    histogram_reading<2> both = left.read();
    both += right.read();
    EXPECT_EQ(both.counts, (counts{1, 1, 1}));
    EXPECT_DOUBLE_EQ(both.sum.count(), 2.5005);
}

// Under ThreadSanitizer this is the test that nothing races.
TEST(counter, may_be_read_while_it_is_written) {
    constexpr std::uint64_t times = 100'000;
    counter subject;
    std::thread writer{[&] {
        for (std::uint64_t index = 0; index < times; ++index) {
            subject.add();
        }
    }};
    std::uint64_t last = 0;
    while (last < times) {
        const std::uint64_t now = subject.value();
        ASSERT_GE(now, last);
        last = now;
    }
    writer.join();
    EXPECT_EQ(subject.value(), times);
}

TEST(gauge, goes_both_ways) {
    gauge subject;
    subject.set(7);
    subject.set(3);
    EXPECT_EQ(subject.value(), 3U);
}

}  // namespace
}  // namespace monolock::telemetry
