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

TEST(command_line, what_is_wrong_is_named) {
    std::uint64_t seeds = 0;
    bool trace = false;
    const std::vector<option> known{with_value("--seeds", read_count<std::uint64_t>, seeds),
                                    {.name = "--trace", .flag = &trace}};
    EXPECT_EQ(read_words({}, known), "");
    EXPECT_EQ(read_words({"--trace", "--seeds", "7"}, known), "");
    EXPECT_EQ(seeds, 7U);
    EXPECT_TRUE(trace);
    EXPECT_EQ(read_words({"--sedes", "7"}, known), "there is no option '--sedes'");
    EXPECT_EQ(read_words({"--trace", "7"}, known), "there is no option '7'");
    EXPECT_EQ(read_words({"--trace", "--seeds"}, known), "no value follows --seeds");
    EXPECT_EQ(read_words({"--seeds", "0"}, known), "'0' is no value for --seeds");
    EXPECT_EQ(read_words({"--seeds", "--trace"}, known), "'--trace' is no value for --seeds");
}

TEST(command_line, who_asks_is_told_and_who_is_wrong_is_told_how) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(show_usage("it", "usage: it\n", {"--help"}, "there is no option '--help'"), 0);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "usage: it\n");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(show_usage("it", "usage: it\n", {"--x"}, "there is no option '--x'"), 2);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "it: there is no option '--x'\nusage: it\n");
}

}  // namespace
}  // namespace monolock::simulation
