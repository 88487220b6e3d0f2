#include "core/assert.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace {

TEST(assert, passes_what_holds_and_evaluates_it_once) {
    int evaluated = 0;
    MONOLOCK_ASSERT(++evaluated == 1);
    EXPECT_EQ(evaluated, 1);
}

TEST(assert_death_test, ends_the_process_and_says_where_and_why) {
    const int owners = 2;
    EXPECT_EXIT(MONOLOCK_ASSERT(owners == 1), testing::KilledBySignal(SIGABRT),
                "^monolock: broken invariant at .*assert_test.cpp:[0-9]+: owners == 1\n$");
}

}  // namespace
