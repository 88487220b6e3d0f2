#include "config/access_rules.hpp"

#include <gtest/gtest.h>

namespace monolock::config {
namespace {

TEST(access_rules, what_no_rule_permits_is_denied) {
    EXPECT_FALSE(access_rules{}.permits("anyone", "anything"));
    const access_rules rules{{{.identity = "a", .locks = {"x"}}}};
    EXPECT_TRUE(rules.permits("a", "x"));
    EXPECT_FALSE(rules.permits("a", "y"));
    EXPECT_FALSE(rules.permits("b", "x"));
    EXPECT_FALSE(rules.permits("", ""));
}

// A pair that no single rule permits is denied, though each half of it appears somewhere.
TEST(access_rules, one_rule_must_permit_both) {
    const access_rules rules{
        {{.identity = "a", .locks = {"x"}}, {.identity = "b", .locks = {"y"}}}};
    EXPECT_TRUE(rules.permits("a", "x"));
    EXPECT_TRUE(rules.permits("b", "y"));
    EXPECT_FALSE(rules.permits("a", "y"));
    EXPECT_FALSE(rules.permits("b", "x"));
}

TEST(access_rules, rules_add_up_in_any_order) {
    const access_rules rules{{{.identity = "spiffe://prod/*", .locks = {"db/*", "cache"}},
                              {.identity = "spiffe://prod/import", .locks = {"nightly"}},
                              {.identity = "*", .locks = {"public/*"}}}};
    EXPECT_TRUE(rules.permits("spiffe://prod/import", "nightly"));
    EXPECT_TRUE(rules.permits("spiffe://prod/import", "db/1/2"));
    EXPECT_TRUE(rules.permits("spiffe://prod/import", "public/x"));
    EXPECT_TRUE(rules.permits("spiffe://prod/web", "cache"));
    EXPECT_FALSE(rules.permits("spiffe://prod/web", "nightly"));
    EXPECT_FALSE(rules.permits("spiffe://test/web", "cache"));
    EXPECT_TRUE(rules.permits("spiffe://test/web", "public/"));
}

TEST(access_rules, wildcards_in_an_identity_are_data) {
    const access_rules rules{{{.identity = "admin", .locks = {"*"}}}};
    EXPECT_FALSE(rules.permits("*", "x"));
    EXPECT_FALSE(rules.permits("adm?n", "x"));
}

TEST(access_rules, says_which_rule_permits_the_first_in_the_file) {
    const access_rules rules{{{.identity = "z", .locks = {"*"}},
                              {.identity = "*", .locks = {"q", "d*", "*b"}},
                              {.identity = "a", .locks = {"*"}}}};
    const auto found = rules.find("a", "db");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rule, 1U);
    EXPECT_EQ(found->pattern, 1U);
    EXPECT_EQ(found->identity, "*");
    EXPECT_EQ(found->lock, "d*");
    EXPECT_EQ(rules.find("a", "x")->rule, 2U);
    EXPECT_FALSE(rules.find("b", "x"));
}

TEST(access_rules, are_equal_when_the_file_says_the_same) {
    const access_rules rules{{{.identity = "a", .locks = {"x", "y"}}}};
    EXPECT_EQ(rules, (access_rules{{{.identity = "a", .locks = {"x", "y"}}}}));
    EXPECT_NE(rules, (access_rules{{{.identity = "a", .locks = {"x"}}}}));
    EXPECT_NE(rules, (access_rules{{{.identity = "b", .locks = {"x", "y"}}}}));
    EXPECT_NE(rules, access_rules{});
}

TEST(access_rules, are_described_for_people) {
    const access_rule rule{.identity = "a", .locks = {"x"}};
    EXPECT_EQ(describe(access_rules{}), "no rules, all claims are denied");
    EXPECT_EQ(describe(access_rules{{rule}}), "1 rule");
    EXPECT_EQ(describe(access_rules{{rule, rule}}), "2 rules");
}

}  // namespace
}  // namespace monolock::config
