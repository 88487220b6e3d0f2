#include "server/step_queue.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monolock::server {
namespace {

std::string all_of(step_queue<char>& queue) {
    std::string taken;
    while (!queue.empty()) {
        taken += queue.take();
    }
    return taken;
}

TEST(step_queue, who_has_begun_goes_on_before_anybody_begins) {
    step_queue<char> queue;
    queue.add_new('n');
    queue.add_begun('b');
    EXPECT_EQ(all_of(queue), "bn");
}

TEST(step_queue, who_has_begun_goes_on_in_the_order_of_arrival) {
    step_queue<char> queue;
    queue.add_begun('1');
    queue.add_begun('2');
    EXPECT_EQ(queue.take(), '1');
    queue.add_begun('3');
    EXPECT_EQ(all_of(queue), "23");
}

TEST(step_queue, the_newest_begins_first) {
    step_queue<char> queue;
    queue.add_new('1');
    queue.add_new('2');
    EXPECT_EQ(queue.take(), '2');
    queue.add_new('3');
    EXPECT_EQ(all_of(queue), "31");
}

// Peers who answer a step at once and never finish keep the queue of those who have begun full.
TEST(step_queue, who_is_new_begins_now_and_then_all_the_same) {
    step_queue<char> queue;
    queue.add_begun('b');
    queue.add_new('n');
    std::string taken;
    while (taken.find('n') == std::string::npos && taken.size() < 100) {
        taken += queue.take();
        queue.add_begun('b');
    }
    EXPECT_EQ(taken, "bbbbbbbn");
}

TEST(step_queue, the_oldest_that_are_over_are_forgotten) {
    step_queue<char> queue;
    queue.add_new('x');
    queue.add_new('x');
    queue.add_new('1');
    queue.add_new('x');
    queue.forget_oldest([](char step) { return step == 'x'; });
    EXPECT_EQ(all_of(queue), "x1");
    queue.forget_oldest([](char) { return true; });
    EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace monolock::server
