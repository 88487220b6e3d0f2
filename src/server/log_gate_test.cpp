#include <gtest/gtest.h>

#include <chrono>

#include "server/logger.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

TEST(log_gate, lets_one_line_in_five_seconds_pass_and_counts_the_others) {
    const std::chrono::steady_clock::time_point start{1h};
    log_gate gate;
    EXPECT_EQ(gate.pass(start), 0U);
    EXPECT_EQ(gate.pass(start), std::nullopt);
    EXPECT_EQ(gate.pass(start + 4999ms), std::nullopt);
    EXPECT_EQ(gate.pass(start + 5s), 2U);
    EXPECT_EQ(gate.pass(start + 6s), std::nullopt);
    EXPECT_EQ(gate.pass(start + 1h), 1U);
    EXPECT_EQ(gate.pass(start + 2h), 0U);
}

TEST(log_gate, an_interval_of_its_own) {
    const std::chrono::steady_clock::time_point start{1h};
    log_gate gate{1min};
    EXPECT_EQ(gate.pass(start), 0U);
    EXPECT_EQ(gate.pass(start + 59s), std::nullopt);
    EXPECT_EQ(gate.pass(start + 60s), 1U);
}

}  // namespace
}  // namespace monolock::server
