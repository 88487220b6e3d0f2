#include "cli/loss_plan.hpp"

#include <gtest/gtest.h>

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;
using action = loss_plan::action;

constexpr loss_plan::time_point at(std::chrono::nanoseconds since_epoch) {
    return loss_plan::time_point{since_epoch};
}

TEST(loss_plan, silence_terminates_a_grace_before_the_deadline_and_kills_at_it) {
    loss_plan plan{2s, at(10s)};
    EXPECT_EQ(plan.next(), at(8s));
    EXPECT_EQ(plan.take(at(8s) - 1ns), action::none);
    EXPECT_FALSE(plan.started());
    EXPECT_EQ(plan.take(at(8s)), action::terminate);
    EXPECT_TRUE(plan.started());
    EXPECT_EQ(plan.take(at(8s)), action::none);
    EXPECT_EQ(plan.next(), at(10s));
    EXPECT_EQ(plan.take(at(10s) - 1ns), action::none);
    EXPECT_EQ(plan.take(at(10s)), action::kill);
    EXPECT_EQ(plan.take(at(20s)), action::none);
    EXPECT_EQ(plan.next(), loss_plan::time_point::max());
}

TEST(loss_plan, confirmations_move_the_deadline) {
    loss_plan plan{2s, at(10s)};
    plan.confirm(at(12s));
    EXPECT_EQ(plan.take(at(9s)), action::none);
    EXPECT_EQ(plan.next(), at(10s));
}

TEST(loss_plan, a_confirmation_after_terminate_takes_nothing_back) {
    loss_plan plan{2s, at(10s)};
    EXPECT_EQ(plan.take(at(8s)), action::terminate);
    plan.confirm(at(13s));
    EXPECT_EQ(plan.next(), at(10s));
    EXPECT_EQ(plan.take(at(10s)), action::kill);
}

TEST(loss_plan, loss_terminates_at_once_and_kills_a_grace_later) {
    loss_plan plan{2s, at(10s)};
    plan.lose(at(3s));
    EXPECT_EQ(plan.take(at(3s)), action::terminate);
    EXPECT_EQ(plan.next(), at(5s));
    EXPECT_EQ(plan.take(at(5s)), action::kill);
}

TEST(loss_plan, a_confirmation_after_the_loss_takes_nothing_back) {
    loss_plan plan{2s, at(10s)};
    plan.lose(at(3s));
    plan.confirm(at(10s));  // what the library still says about the claim that it lost
    EXPECT_EQ(plan.next(), at(3s));
    EXPECT_EQ(plan.take(at(3s)), action::terminate);
}

TEST(loss_plan, loss_after_terminate_keeps_the_kill_where_it_is) {
    loss_plan plan{2s, at(10s)};
    EXPECT_EQ(plan.take(at(8s)), action::terminate);
    plan.lose(at(9s));
    EXPECT_EQ(plan.next(), at(10s));
}

TEST(loss_plan, loss_noticed_late_does_not_move_the_kill_past_the_deadline) {
    loss_plan plan{2s, at(10s)};
    plan.lose(at(9s));  // the timer of 8 s has not been served yet
    EXPECT_EQ(plan.take(at(9s)), action::terminate);
    EXPECT_EQ(plan.next(), at(10s));
}

TEST(loss_plan, grace_zero_kills_without_terminating) {
    loss_plan silent{0s, at(10s)};
    EXPECT_EQ(silent.take(at(10s)), action::kill);
    loss_plan broken{0s, at(10s)};
    broken.lose(at(3s));
    EXPECT_EQ(broken.take(at(3s)), action::kill);
    EXPECT_TRUE(broken.started());
}

TEST(loss_plan, waking_too_late_kills_at_once) {
    loss_plan plan{2s, at(10s)};
    EXPECT_EQ(plan.take(at(60s)), action::kill);
    EXPECT_EQ(plan.take(at(60s)), action::none);
}

}  // namespace
}  // namespace monolock::cli
