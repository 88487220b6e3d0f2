#include "simulation/command_line.hpp"

#include <gtest/gtest.h>

namespace monolock::simulation {
namespace {

TEST(command_line, a_scale_multiplies_and_leaves_at_least_one) {
    EXPECT_EQ(scaled(500, "0.25"), 125U);
    EXPECT_EQ(scaled(500, "3"), 1500U);
    EXPECT_EQ(scaled(500, "0.001"), 1U);
    EXPECT_EQ(scaled(500, "0"), 1U);
}

TEST(command_line, what_is_no_scale_is_not_taken_for_one) {
    for (const char* const text : {"", "abc", "0.5x", " 1", "-5", "nan", "inf", "1e300"}) {
        EXPECT_EQ(scaled(500, text), std::nullopt) << text;
    }
}

TEST(command_line, threads_are_at_least_one_and_no_millions) {
    unsigned jobs = 0;
    EXPECT_TRUE(read_jobs("1", jobs));
    EXPECT_TRUE(read_jobs("1024", jobs));
    EXPECT_EQ(jobs, 1024U);
    for (const char* const text : {"0", "-1", "1025", "4294967295", "two", ""}) {
        EXPECT_FALSE(read_jobs(text, jobs)) << text;
    }
}

TEST(command_line, nothing_is_no_number_of_seeds) {
    std::uint64_t seeds = 0;
    EXPECT_TRUE(read_count("18446744073709551615", seeds));
    EXPECT_FALSE(read_count("0", seeds));
    EXPECT_FALSE(read_count("18446744073709551616", seeds));
}

}  // namespace
}  // namespace monolock::simulation
