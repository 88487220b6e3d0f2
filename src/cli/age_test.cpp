#include "cli/age.hpp"

#include <gtest/gtest.h>

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;

TEST(age, two_units_that_matter) {
    EXPECT_EQ(format_age(0ms), "0ms");
    EXPECT_EQ(format_age(999ms), "999ms");
    EXPECT_EQ(format_age(1s), "1.0s");
    EXPECT_EQ(format_age(12'399ms), "12.3s");
    EXPECT_EQ(format_age(59'999ms), "59.9s");
    EXPECT_EQ(format_age(3min + 12s + 900ms), "3m12s");
    EXPECT_EQ(format_age(59min + 59s + 999ms), "59m59s");
    EXPECT_EQ(format_age(5h + 10min), "5h10m");
    EXPECT_EQ(format_age(24h * 12 + 3h + 59min), "12d3h");
}

}  // namespace
}  // namespace monolock::cli
