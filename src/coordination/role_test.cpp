#include "coordination/role.hpp"

#include <gtest/gtest.h>

namespace monolock::coordination {
namespace {

// The admin API and the log show these; whoever watches a server compares them.
TEST(role, has_a_name_for_each_state) {
    EXPECT_EQ(to_string(role::standby), "standby");
    EXPECT_EQ(to_string(role::campaigning), "campaigning");
    EXPECT_EQ(to_string(role::waiting), "waiting");
    EXPECT_EQ(to_string(role::active), "active");
    EXPECT_EQ(to_string(role::stepping_down), "stepping down");
    EXPECT_EQ(to_string(role::resigning), "resigning");
    EXPECT_EQ(to_string(role::retired), "retired");
}

TEST(role, has_words_for_each_loss) {
    EXPECT_EQ(to_string(loss::mandate_over), "no renewal was answered in time");
    EXPECT_EQ(to_string(loss::key_taken), "another server has the key");
    EXPECT_EQ(to_string(loss::key_gone), "the key is gone");
    EXPECT_EQ(to_string(loss::lease_gone), "the lease has ended");
    EXPECT_EQ(to_string(loss::shut_down), "it was shut down");
}

}  // namespace
}  // namespace monolock::coordination
