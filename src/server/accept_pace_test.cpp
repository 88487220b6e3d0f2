#include "server/accept_pace.hpp"

#include <gtest/gtest.h>

namespace monolock::server {
namespace {

TEST(accept_pace_test, one_by_one_when_connections_come_one_by_one) {
    accept_pace pace;
    for (std::uint64_t turn = 1; turn < 1000; turn += 2) {
        pace.begin_turn(turn);
        EXPECT_EQ(pace.allowance(), 1);
    }
}

TEST(accept_pace_test, more_and_more_in_a_rush_and_one_again_after_it) {
    accept_pace pace;
    int taken = 0;
    std::uint64_t turn = 0;
    for (; turn < 20; ++turn) {
        pace.begin_turn(turn);
        EXPECT_LE(pace.allowance(), accept_pace::batch_max);
        taken += pace.allowance();
    }
    EXPECT_EQ(pace.allowance(), accept_pace::batch_max);
    EXPECT_GT(taken, 10 * accept_pace::batch_max);
    pace.begin_turn(turn + 1);
    EXPECT_EQ(pace.allowance(), 1) << "a turn in which nobody waited";
}

// Connections that come in turn after turn, but one at a time: an accept in vain is seldom.
TEST(accept_pace_test, it_learns_that_many_turns_are_no_rush) {
    accept_pace pace;
    int in_vain = 0;
    for (std::uint64_t turn = 0; turn < 10'000; ++turn) {
        pace.begin_turn(turn);
        if (pace.allowance() > 1) {
            pace.found_less();
            ++in_vain;
        }
    }
    EXPECT_LT(in_vain, 10'000 / accept_pace::patience_max + 10);
    EXPECT_GT(in_vain, 10) << "it must go on trying: a rush may begin at any time";
}

TEST(accept_pace_test, a_rush_after_many_mistakes_is_believed_in) {
    accept_pace pace;
    std::uint64_t turn = 0;
    for (; turn < 1000; ++turn) {
        pace.begin_turn(turn);
        if (pace.allowance() > 1) {
            pace.found_less();
        }
    }
    constexpr std::uint64_t patience{accept_pace::patience_max};
    for (const std::uint64_t rush = turn + 2 * patience; turn < rush; ++turn) {
        pace.begin_turn(turn);
    }
    EXPECT_EQ(pace.allowance(), accept_pace::batch_max);
}

}  // namespace
}  // namespace monolock::server
