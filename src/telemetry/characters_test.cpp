#include "telemetry/characters.hpp"

#include <gtest/gtest.h>

namespace monolock::telemetry {
namespace {

TEST(characters, what_nobody_sees) {
    for (const char32_t point : {U'\u00AD', U'\u034F', U'\u061C', U'\u115F', U'\u180E', U'\u200B',
                                 U'\u200D', U'\u202E', U'\u2060', U'\u3164', U'\uFE0F', U'\uFEFF',
                                 U'\uFFA0', U'\uFFFB', U'\U000E0041', U'\U000E01EF'}) {
        EXPECT_TRUE(is_invisible(point)) << std::hex << static_cast<unsigned>(point);
    }
    for (const char32_t point : {U'\0', U' ', U'a', U'\u00AC', U'\u00AE', U'\u0301', U'\u2010',
                                 U'\u65E5', U'\uFFFC', U'\U0001F512', U'\U0010FFFF'}) {
        EXPECT_FALSE(is_invisible(point)) << std::hex << static_cast<unsigned>(point);
    }
}

TEST(characters, what_looks_like_a_space) {
    for (const char32_t point : {U'\u00A0', U'\u1680', U'\u2000', U'\u2003', U'\u200A', U'\u202F',
                                 U'\u205F', U'\u2800', U'\u3000'}) {
        EXPECT_TRUE(is_odd_blank(point)) << std::hex << static_cast<unsigned>(point);
    }
    for (const char32_t point :
         {U' ', U'a', U'\u00A1', U'\u1681', U'\u200B', U'\u2801', U'\u3001'}) {
        EXPECT_FALSE(is_odd_blank(point)) << std::hex << static_cast<unsigned>(point);
    }
}

TEST(characters, what_is_drawn_on_another) {
    for (const char32_t point :
         {U'\u0300', U'\u036F', U'\u0489', U'\u05B0', U'\u093C', U'\u0E31', U'\u1161', U'\u11A8',
          U'\u20DD', U'\u3099', U'\uFE20', U'\U0001D167', U'\U0001E94A'}) {
        EXPECT_TRUE(is_mark(point)) << std::hex << static_cast<unsigned>(point);
    }
    for (const char32_t point : {U'\0', U'~', U'\u02FF', U'\u0370', U'\u0903', U'\u0E30', U'\u1100',
                                 U'\uAC00', U'\U0001F3FB', U'\U0010FFFF'}) {
        EXPECT_FALSE(is_mark(point)) << std::hex << static_cast<unsigned>(point);
    }
}

}  // namespace
}  // namespace monolock::telemetry
