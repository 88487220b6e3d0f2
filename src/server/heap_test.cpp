#include "server/heap.hpp"

#include <gtest/gtest.h>

namespace monolock::server {
namespace {

TEST(crowd_gauge, a_crowd_has_left_when_half_of_it_has) {
    crowd_gauge gauge;
    EXPECT_FALSE(gauge.has_left(0, 0));
    EXPECT_FALSE(gauge.has_left(0, 10'000));
    EXPECT_FALSE(gauge.has_left(0, 5'001));
    EXPECT_TRUE(gauge.has_left(0, 5'000));
    EXPECT_FALSE(gauge.has_left(0, 5'000)) << "it was said";
    EXPECT_FALSE(gauge.has_left(0, 2'501));
    EXPECT_TRUE(gauge.has_left(0, 2'500));
}

TEST(crowd_gauge, a_few_are_no_crowd) {
    crowd_gauge gauge;
    EXPECT_FALSE(gauge.has_left(0, crowd_gauge::few - 1));
    EXPECT_FALSE(gauge.has_left(0, 0));
    EXPECT_FALSE(gauge.has_left(0, crowd_gauge::few));
    EXPECT_TRUE(gauge.has_left(0, 0));
}

TEST(crowd_gauge, a_crowd_that_comes_again_can_leave_again) {
    crowd_gauge gauge;
    for (int time = 0; time < 3; ++time) {
        EXPECT_FALSE(gauge.has_left(0, 10'000));
        EXPECT_TRUE(gauge.has_left(0, 0));
    }
}

TEST(crowd_gauge, a_crowd_that_came_and_left_between_two_looks_has_left) {
    crowd_gauge gauge;
    EXPECT_FALSE(gauge.has_left(0, 10));
    EXPECT_TRUE(gauge.has_left(9'000, 10));
    EXPECT_FALSE(gauge.has_left(10, 10));
}

}  // namespace
}  // namespace monolock::server
