#include "posix/boot_timer.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "posix/boot_time.hpp"

namespace monolock::posix {
namespace {

using namespace std::chrono_literals;

bool is_due(const boot_timer& timer, std::chrono::milliseconds wait = 0ms) {
    pollfd polled{timer.descriptor(), POLLIN, 0};
    return ::poll(&polled, 1, static_cast<int>(wait.count())) == 1;
}

TEST(boot_timer, is_due_at_its_moment_and_not_before) {
    boot_timer timer;
    EXPECT_FALSE(is_due(timer));
    const auto moment = boot_now().time_since_epoch() + 2ms;
    timer.set(moment);
    EXPECT_TRUE(is_due(timer, 10s));
    EXPECT_GE(boot_now().time_since_epoch(), moment);
}

TEST(boot_timer, the_past_is_due_and_never_is_not) {
    boot_timer timer;
    for (const auto past : {0ns, 1ns, -5ns, boot_now().time_since_epoch()}) {
        timer.set(past);
        EXPECT_TRUE(is_due(timer));
        timer.set(std::chrono::nanoseconds::max());
        EXPECT_FALSE(is_due(timer));
    }
}

}  // namespace
}  // namespace monolock::posix
