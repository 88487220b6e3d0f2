#include "cli/display_width.hpp"

#include <gtest/gtest.h>

namespace monolock::cli {
namespace {

TEST(display_width, counts_columns_and_not_bytes) {
    EXPECT_EQ(display_width(""), 0U);
    EXPECT_EQ(display_width("nightly"), 7U);
    EXPECT_EQ(display_width("über"), 4U);
    EXPECT_EQ(display_width("日本語"), 6U);
    EXPECT_EQ(display_width("🔒"), 2U);
    EXPECT_EQ(display_width("e\u0301"), 1U);   // a letter and a mark on it
    EXPECT_EQ(display_width("a\u200Bb"), 2U);  // a blank without width
    EXPECT_EQ(display_width("\uFF21"), 2U);    // full-width A
    EXPECT_EQ(display_width("\u05E9\u05B8\u05C1"), 1U);
    EXPECT_EQ(display_width("\u1112\u1161\u11AB"), 2U);  // a syllable of Hangul in its parts
    EXPECT_EQ(display_width("\U0001F3FB"), 2U);
    EXPECT_EQ(display_width("a\U000E0041"), 1U);
    EXPECT_EQ(display_width("\u00A0\u02FF\u0370"), 3U);
}

}  // namespace
}  // namespace monolock::cli
