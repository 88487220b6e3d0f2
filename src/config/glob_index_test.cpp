#include "config/glob_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace monolock::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::set<std::size_t> matches(const glob_index& patterns, std::string_view text) {
    std::set<std::size_t> places;
    EXPECT_FALSE(patterns.any_match(text, [&places](std::size_t place) {
        EXPECT_TRUE(places.insert(place).second) << "each once";
        return false;
    }));
    return places;
}

TEST(glob_index, finds_all_that_match_and_no_others) {
    const glob_index patterns{{"db/*", "*", "db/a", "d?/a", "db", "", "db/a*", "db/a", "*a"}};
    EXPECT_THAT(matches(patterns, "db/a"), ElementsAre(0, 1, 2, 3, 6, 7, 8));
    EXPECT_THAT(matches(patterns, "db"), ElementsAre(1, 4));
    EXPECT_THAT(matches(patterns, ""), ElementsAre(1, 5));
    EXPECT_THAT(matches(glob_index{}, "db"), IsEmpty());
    EXPECT_THAT(matches(glob_index{{"db"}}, "d"), IsEmpty());
}

TEST(glob_index, stops_where_the_visitor_says) {
    const glob_index patterns{{"a", "*", "?"}};
    int calls = 0;
    EXPECT_TRUE(patterns.any_match("a", [&calls](std::size_t) { return ++calls == 2; }));
    EXPECT_EQ(calls, 2);
}

// Against trying each, over a small alphabet so that there are many near misses.
TEST(glob_index, agrees_with_trying_each_pattern) {
    std::mt19937 random{20260101};
    const auto text_of = [&random](std::string_view letters, std::size_t longest) {
        std::string text(random() % (longest + 1), ' ');
        for (char& letter : text) {
            letter = letters[random() % letters.size()];
        }
        return text;
    };
    for (int round = 0; round < 200; ++round) {
        std::vector<std::string> patterns(random() % 30);
        for (std::string& pattern : patterns) {
            pattern = text_of("ab/*?", 5);
        }
        const glob_index index{patterns};
        for (int trial = 0; trial < 20; ++trial) {
            const std::string text = text_of("ab/", 6);
            std::set<std::size_t> expected;
            for (std::size_t place = 0; place < patterns.size(); ++place) {
                if (matches_glob(patterns[place], text)) {
                    expected.insert(place);
                }
            }
            EXPECT_EQ(matches(index, text), expected) << testing::PrintToString(patterns) << text;
        }
    }
}

}  // namespace
}  // namespace monolock::config
