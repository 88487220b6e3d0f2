#include "config/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace monolock::config {
namespace {

TEST(number, is_the_whole_text) {
    EXPECT_EQ(parse_number<int>("42"), 42);
    EXPECT_EQ(parse_number<int>("-1"), -1);
    EXPECT_EQ(parse_number<int>("007"), 7);
    for (const char* const text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.0", "--1", "a"}) {
        EXPECT_FALSE(parse_number<int>(text)) << text;
    }
    EXPECT_FALSE(parse_number<int>(std::string_view{"1\0", 2}));
}

TEST(number, fits_its_type) {
    EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
    EXPECT_FALSE(parse_number<std::uint16_t>("65536"));
    EXPECT_FALSE(parse_number<std::uint16_t>("-1"));
    EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
    EXPECT_FALSE(parse_number<std::uint64_t>("18446744073709551616"));
}

}  // namespace
}  // namespace monolock::config
