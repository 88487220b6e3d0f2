#include "config/duration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace monolock::config {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

nanoseconds value_of(std::string_view text) {
    const auto value = parse_duration(text);
    EXPECT_TRUE(value) << text;
    return value ? *value : nanoseconds::min();
}

std::string why_not(std::string_view text) {
    const auto value = parse_duration(text);
    EXPECT_FALSE(value) << text;
    return value ? "" : value.error().text;
}

TEST(duration, as_go_writes_them) {
    EXPECT_EQ(value_of("5s"), 5s);
    EXPECT_EQ(value_of("250ms"), 250ms);
    EXPECT_EQ(value_of("1m30s"), 90s);
    EXPECT_EQ(value_of("1.5h"), 90min);
    EXPECT_EQ(value_of("7us"), 7us);
    EXPECT_EQ(value_of("7\u00B5s"), 7us);
    EXPECT_EQ(value_of("7\u03BCs"), 7us);
    EXPECT_EQ(value_of("9ns"), 9ns);
    EXPECT_EQ(value_of(".5s"), 500ms);
    EXPECT_EQ(value_of("5.s"), 5s);
    EXPECT_EQ(value_of("1s1h"), 1h + 1s);
    EXPECT_EQ(value_of("1s.5s"), 1500ms);
    EXPECT_EQ(value_of("-3s"), -3s);
    EXPECT_EQ(value_of("+3s"), 3s);
    EXPECT_EQ(value_of("0"), 0s);
    EXPECT_EQ(value_of("-0"), 0s);
    EXPECT_EQ(value_of("0s"), 0s);
}

TEST(duration, fractions_are_exact_and_cut_below_a_nanosecond) {
    EXPECT_EQ(value_of("0.1s"), 100ms);
    EXPECT_EQ(value_of("0.000000001s"), 1ns);
    EXPECT_EQ(value_of("0.0000000019s"), 1ns);
    EXPECT_EQ(value_of("0.9ns"), 0ns);
    EXPECT_EQ(value_of("0.00000000000028h"), 1ns);  // 1.008 ns
    EXPECT_EQ(value_of("0." + std::string(1000, '9') + "s"), 999'999'999ns);
}

TEST(duration, refusals_say_what_to_write) {
    EXPECT_THAT(why_not("5"), testing::HasSubstr("needs a unit, like 5s"));
    EXPECT_THAT(why_not("1m30"), testing::HasSubstr("needs a unit"));
    EXPECT_THAT(why_not("0.0"), testing::HasSubstr("needs a unit"));
    EXPECT_THAT(why_not("5 s"), testing::HasSubstr("unknown unit"));
    EXPECT_THAT(why_not("5S"), testing::HasSubstr("unknown unit"));
    EXPECT_THAT(why_not("5d"), testing::HasSubstr("unknown unit"));
    for (const std::string_view text : {"", "-", "abc", "s", ".s", "--5s", " 5s", "s5"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("not a duration")) << text;
    }
}

TEST(duration, overflow_is_refused_not_wrapped) {
    EXPECT_EQ(value_of("9223372036854775807ns"), nanoseconds::max());
    EXPECT_EQ(value_of("-9223372036854775807ns"), -nanoseconds::max());
    for (const std::string_view text :
         {"9223372036854775808ns", "99999999999999999999ns", "2562048h", "2562047h47m16.9s",
          "18446744073709551616h", "9223372036854775807ns1ns", "9223372036.9s",
          "-9223372036854775809ns", "-2562047h47m16.854775809s"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("too long")) << text;
    }
}

TEST(duration, formats_the_way_people_write) {
    EXPECT_EQ(format_duration(5s), "5s");
    EXPECT_EQ(format_duration(0s), "0s");
    EXPECT_EQ(format_duration(250ms), "250ms");
    EXPECT_EQ(format_duration(1500ms), "1.5s");
    EXPECT_EQ(format_duration(1500us), "1.5ms");
    EXPECT_EQ(format_duration(90s), "1m30s");
    EXPECT_EQ(format_duration(90min), "1h30m");
    EXPECT_EQ(format_duration(1h), "1h");
    EXPECT_EQ(format_duration(1h + 5ms), "1h0.005s");
    EXPECT_EQ(format_duration(-2s), "-2s");
    EXPECT_EQ(format_duration(1ns), "1ns");
}

TEST(duration, format_and_parse_are_inverse) {
    constexpr unsigned seed = 7;
    std::mt19937_64 random{seed};
    for (int round = 0; round < 20000; ++round) {
        // Shifted, so that all magnitudes occur.
        const auto count =
            static_cast<std::int64_t>(random() >> 1U >> (static_cast<unsigned>(round) % 63U));
        const nanoseconds value{round % 2 == 0 ? count : -count};
        ASSERT_EQ(value_of(format_duration(value)), value) << format_duration(value);
    }
    EXPECT_EQ(format_duration(nanoseconds::min()), "-2562047h47m16.854775808s");
    const auto smallest = parse_duration("-2562047h47m16.854775808s");
    ASSERT_TRUE(smallest);
    EXPECT_EQ(*smallest, nanoseconds::min());
}

}  // namespace
}  // namespace monolock::config
