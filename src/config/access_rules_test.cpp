#include "config/access_rules.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

// Rules of one identity are looked up together, and still told apart.
TEST(access_rules, says_which_of_several_rules_of_one_identity_it_was) {
    const access_rules rules{{{.identity = "a", .locks = {"x", "y*"}},
                              {.identity = "*", .locks = {"z"}},
                              {.identity = "a", .locks = {"yes", "q*"}},
                              {.identity = "*", .locks = {"q", "n"}}}};
    EXPECT_EQ(rules.size(), 4U);
    const auto place_of = [&rules](std::string_view identity, std::string_view lock) {
        const auto found = rules.find(identity, lock);
        return found ? std::to_string(found->rule) + '/' + std::to_string(found->pattern) + ' ' +
                           std::string{found->identity} + ' ' + std::string{found->lock}
                     : "nobody";
    };
    EXPECT_EQ(place_of("a", "yes"), "0/1 a y*") << "the first in the file, of two that match";
    EXPECT_EQ(place_of("a", "q"), "2/1 a q*") << "before the other identity's";
    EXPECT_EQ(place_of("b", "q"), "3/0 * q");
    EXPECT_EQ(place_of("a", "n"), "3/1 * n");
    EXPECT_EQ(place_of("b", "x"), "nobody");
    EXPECT_TRUE(rules.permits("a", "qq"));
    EXPECT_FALSE(rules.permits("b", "qq"));
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
