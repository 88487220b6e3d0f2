#include "config/glob.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace monolock::config {
namespace {

using namespace std::chrono_literals;

TEST(glob, a_pattern_without_wildcards_is_the_text) {
    EXPECT_TRUE(matches_glob("nightly", "nightly"));
    EXPECT_FALSE(matches_glob("nightly", "Nightly"));
    EXPECT_FALSE(matches_glob("nightly", "nightly "));
    EXPECT_FALSE(matches_glob("nightly", "nightl"));
    EXPECT_FALSE(matches_glob("nightly", ""));
    EXPECT_FALSE(matches_glob("", "nightly"));
    EXPECT_TRUE(matches_glob("", ""));
}

TEST(glob, a_star_is_any_run_slashes_included) {
    EXPECT_TRUE(matches_glob("db/*", "db/a"));
    EXPECT_TRUE(matches_glob("db/*", "db/a/b"));
    EXPECT_TRUE(matches_glob("db/*", "db/"));
    EXPECT_FALSE(matches_glob("db/*", "db"));
    EXPECT_FALSE(matches_glob("db/*", "xdb/a"));
    EXPECT_TRUE(matches_glob("*", ""));
    EXPECT_TRUE(matches_glob("*", "a/b\nc"));
    EXPECT_TRUE(matches_glob("**", "x"));
    EXPECT_TRUE(matches_glob("*-prod", "eu-prod"));
    EXPECT_FALSE(matches_glob("*-prod", "eu-prod-2"));
    EXPECT_TRUE(matches_glob("a*b*c", "a-b-b-c-c"));
    EXPECT_FALSE(matches_glob("a*b*c", "acb"));
    EXPECT_TRUE(matches_glob("*ab", "aab"));
    EXPECT_TRUE(matches_glob("*aba*", "abcabab"));
}

TEST(glob, a_question_mark_is_one_character) {
    EXPECT_TRUE(matches_glob("db?", "db1"));
    EXPECT_TRUE(matches_glob("db?", "db/"));
    EXPECT_FALSE(matches_glob("db?", "db"));
    EXPECT_FALSE(matches_glob("db?", "db12"));
    EXPECT_TRUE(matches_glob("?", "\u00FC"));
    EXPECT_TRUE(matches_glob("?", "\u20AC"));
    EXPECT_TRUE(matches_glob("?", "\U0001F512"));
    EXPECT_FALSE(matches_glob("??", "\U0001F512"));
    EXPECT_FALSE(matches_glob("?", "e\u0301")) << "a combining mark is a character of its own";
    EXPECT_TRUE(matches_glob("??", "e\u0301"));
    EXPECT_TRUE(matches_glob("*?x", "\u20ACx"));
    EXPECT_FALSE(matches_glob("*??x", "\u20ACx")) << "a star takes whole characters";
    EXPECT_TRUE(matches_glob("?", std::string_view{"\0", 1}));
}

TEST(glob, everything_else_is_itself) {
    for (const char* const text : {".", "+", "[", "]", "[a]", "\\", "\\a", "^", "$", "(a|b)",
                                   "{a,b}", "!", "~", "%2f", " ", "\t"}) {
        EXPECT_TRUE(matches_glob(text, text)) << text;
    }
    EXPECT_FALSE(matches_glob(".", "a"));
    EXPECT_FALSE(matches_glob("a+", "aa"));
    EXPECT_FALSE(matches_glob("[a]", "a"));
    EXPECT_FALSE(matches_glob("\\*", "*")) << "there is no escape";
    EXPECT_TRUE(matches_glob("\\*", "\\anything"));
}

TEST(glob, wildcards_in_the_text_are_data) {
    EXPECT_FALSE(matches_glob("admin", "*"));
    EXPECT_FALSE(matches_glob("admin", "adm?n"));
    EXPECT_FALSE(matches_glob("a", "?"));
    EXPECT_TRUE(matches_glob("a*", "a*"));
    EXPECT_TRUE(matches_glob("?", "*"));
}

TEST(glob, text_that_is_not_utf8_is_taken_as_it_comes) {
    EXPECT_TRUE(matches_glob("?", "\xFF"));
    EXPECT_TRUE(matches_glob("??", "\xFF\xFE"));
    EXPECT_TRUE(matches_glob("?", "\xC3"));
    EXPECT_TRUE(matches_glob("?", "\x80\x80"));
}

// What takes a recursive matcher the age of the universe.
TEST(glob, takes_linear_time) {
    const std::string text(4096, 'a');
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(matches_glob("a*a*a*a*b", text));
    EXPECT_FALSE(matches_glob("a*a*a*a*b*", text));
    EXPECT_FALSE(matches_glob("a*a*a*a*b?", text));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10ms);

    std::string many;
    for (int stars = 0; stars < 1000; ++stars) {
        many += "*a";
    }
    EXPECT_TRUE(matches_glob(many, text));
    EXPECT_TRUE(matches_glob(many + "?", text));
    EXPECT_FALSE(matches_glob(many + "b*", text));
}

TEST(glob, literal_prefix) {
    EXPECT_EQ(literal_prefix("db/*"), "db/");
    EXPECT_EQ(literal_prefix("db?x*"), "db");
    EXPECT_EQ(literal_prefix("nightly"), "nightly");
    EXPECT_EQ(literal_prefix("*"), "");
    EXPECT_EQ(literal_prefix(""), "");
}

}  // namespace
}  // namespace monolock::config
