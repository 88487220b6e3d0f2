#include "coordination/token_window.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace monolock::coordination {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t now_ms = 1'700'000'000'000;
constexpr std::uint64_t now = now_ms << 10U;

TEST(token_window, is_four_ttl_of_the_clock) {
    EXPECT_EQ(token_window(5s), std::uint64_t{20'000} << 10U);
    EXPECT_EQ(token_window(-5s), 0U);
}

TEST(token_window, a_ceiling_is_a_window_above_what_is_due_and_never_falls) {
    EXPECT_EQ(next_ceiling({5, 5}, {.last = 0, .unix_ms = now_ms}, 100), now + 100);
    EXPECT_EQ(next_ceiling({5, 5}, {.last = now + 7, .unix_ms = now_ms}, 100), now + 108);
    EXPECT_EQ(next_ceiling({now + 50, now + 50}, {.last = 0, .unix_ms = now_ms}, 100), now + 150);
    EXPECT_EQ(next_ceiling({5, now + 900}, {.last = 0, .unix_ms = now_ms}, 100), now + 900)
        << "the clock went back, or nothing was granted";
}

TEST(token_window, the_clock_leads_no_ceiling_past_what_is_exact) {
    EXPECT_EQ(next_ceiling({5, 5}, {.last = 0, .unix_ms = most}, 100), exact_below);
    EXPECT_EQ(next_ceiling({5, 5}, {.last = exact_below, .unix_ms = most}, 100), exact_below + 101)
        << "but tokens rise all the same";
}

TEST(token_window, a_ceiling_is_near_when_less_than_half_a_window_is_left) {
    EXPECT_FALSE(ceiling_is_near({5, now + 50}, {.last = 0, .unix_ms = now_ms}, 100));
    EXPECT_TRUE(ceiling_is_near({5, now + 49}, {.last = 0, .unix_ms = now_ms}, 100));
    EXPECT_TRUE(ceiling_is_near({5, now + 50}, {.last = now, .unix_ms = now_ms}, 100));
    EXPECT_TRUE(ceiling_is_near({5, 5}, {.last = 0, .unix_ms = 0}, 100)) << "there is none yet";
}

TEST(token_window, a_token_is_the_clocks_if_that_is_within_the_range) {
    const token_range range{.first = now - 1000, .ceiling = now + 1000};
    EXPECT_EQ(next_token(range, {.last = 0, .unix_ms = now_ms}), now);
    EXPECT_EQ(next_token(range, {.last = now, .unix_ms = now_ms}), now + 1);
    EXPECT_EQ(next_token(range, {.last = 0, .unix_ms = 0}), now - 1000);
    EXPECT_EQ(next_token(range, {.last = 0, .unix_ms = most}), now + 999);
    EXPECT_EQ(next_token(range, {.last = now + 998, .unix_ms = now_ms}), now + 999);
    EXPECT_EQ(next_token(range, {.last = now + 999, .unix_ms = now_ms}), std::nullopt);
    EXPECT_EQ(next_token({}, {.last = 0, .unix_ms = now_ms}), std::nullopt);
    EXPECT_EQ(next_token({.first = 7, .ceiling = 7}, {.last = 0, .unix_ms = 0}), std::nullopt);
}

TEST(token_window, the_largest_number_there_is_breaks_nothing) {
    const token_range full{.first = most, .ceiling = most};
    EXPECT_EQ(next_ceiling(full, {.last = most, .unix_ms = now_ms}, 100), most);
    EXPECT_FALSE(ceiling_is_near(full, {.last = most, .unix_ms = now_ms}, 100))
        << "or it renews on";
    EXPECT_EQ(next_token(full, {.last = most, .unix_ms = now_ms}), std::nullopt);
}

}  // namespace
}  // namespace monolock::coordination
