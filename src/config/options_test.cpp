#include "config/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

namespace monolock::config {

// For messages of this test.
void PrintTo(const setting& what, std::ostream* out) {
    *out << what.option << " from " << what.source << " = " << what.value;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<option, 4> table{
    option{.name = "size", .variable = "T_SIZE", .default_text = "1", .help = "how big"},
    option{.name = "colour", .variable = "T_COLOUR", .default_text = "red", .help = "which"},
    option{.name = "fast", .kind = option_kind::toggle, .help = "hurry"},
    option{.name = "h", .kind = option_kind::request},
};

using words = std::vector<const char*>;

command_line scanned(const words& what) {
    auto out = scan(table, what, "-");
    EXPECT_TRUE(out) << out.error().text;
    return *std::move(out);
}

std::string why_not(const words& what) {
    const auto out = scan(table, what, "-");
    EXPECT_FALSE(out);
    return out ? "" : out.error().text;
}

auto is(std::size_t index, std::string value, std::string source) {
    return testing::AllOf(testing::Field("option", &setting::option, index),
                          testing::Field("value", &setting::value, value),
                          testing::Field("source", &setting::source, source));
}

TEST(options, all_spellings_mean_the_same) {
    for (const words& spelling :
         {words{"-size", "5"}, words{"-size=5"}, words{"--size", "5"}, words{"--size=5"}}) {
        EXPECT_THAT(scanned(spelling).settings, ElementsAre(is(0, "5", "-size")));
    }
}

TEST(options, the_next_word_is_the_value_whatever_it_looks_like) {
    EXPECT_THAT(scanned({"-size", "-colour", "-colour=a=b"}).settings,
                ElementsAre(is(0, "-colour", "-size"), is(1, "a=b", "-colour")));
    EXPECT_THAT(scanned({"-size", "--", "-fast"}).settings,
                ElementsAre(is(0, "--", "-size"), is(2, "", "-fast")));
    EXPECT_THAT(scanned({"-size="}).settings, ElementsAre(is(0, "", "-size")));
    EXPECT_THAT(scanned({"-size", ""}).settings, ElementsAre(is(0, "", "-size")));
}

TEST(options, end_at_the_first_other_word_or_at_two_dashes) {
    EXPECT_THAT(scanned({"-fast", "name", "-size"}).rest, ElementsAre("name", "-size"));
    EXPECT_THAT(scanned({"-fast", "--", "-size", "--"}).rest, ElementsAre("-size", "--"));
    EXPECT_THAT(scanned({"-"}).rest, ElementsAre("-"));
    EXPECT_THAT(scanned({""}).rest, ElementsAre(""));
    EXPECT_THAT(scanned({}).rest, IsEmpty());
}

TEST(options, anywhere_they_stand_between_the_words_too) {
    const words given{"one", "-fast", "two", "-size", "5", "-", "--", "-fast"};
    const auto found = scan_anywhere(table, given, "-");
    ASSERT_TRUE(found);
    EXPECT_THAT(found->settings, ElementsAre(is(2, "", "-fast"), is(0, "5", "-size")));
    EXPECT_THAT(found->rest, ElementsAre("one", "two", "-", "-fast"));
    const auto none = scan_anywhere(table, words{}, "-");
    ASSERT_TRUE(none);
    EXPECT_THAT(none->rest, IsEmpty());
    EXPECT_EQ(scan_anywhere(table, words{"one", "-h", "-nonsense"}, "-")->request, 3U);
    EXPECT_EQ(scan_anywhere(table, words{"one", "-nonsense"}, "-").error().text,
              "unknown flag \"-nonsense\"");
}

TEST(options, a_request_hides_what_follows_it) {
    EXPECT_EQ(scanned({"-fast", "-h", "-nonsense"}).request, 3U);
    EXPECT_EQ(scanned({"--h"}).request, 3U);
    EXPECT_EQ(scanned({"-size", "-h"}).request, std::nullopt);
    EXPECT_EQ(why_not({"-nonsense", "-h"}), R"(unknown flag "-nonsense")");
}

TEST(options, mistakes_name_the_flag) {
    EXPECT_EQ(why_not({"-sizes", "5"}), R"(unknown flag "-sizes")");
    EXPECT_EQ(why_not({"-siz", "5"}), R"(unknown flag "-siz")");
    EXPECT_EQ(why_not({"---size", "5"}), R"(unknown flag "---size")");
    EXPECT_EQ(why_not({"-a\nb"}), R"(unknown flag "-a\nb")");
    EXPECT_EQ(why_not({"-=5"}), R"(unknown flag "-=5")");
    EXPECT_EQ(why_not({"--size"}), "-size needs a value");
    EXPECT_EQ(why_not({"-fast=yes"}), "-fast takes no value");
}

TEST(options, flag_beats_environment_and_empty_is_unset) {
    const std::map<std::string, const char*> set{{"T_SIZE", "7"}, {"T_COLOUR", ""}};
    const auto lookup = [&](const char* name) -> const char* {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second;
    };
    EXPECT_THAT(with_environment(table, {}, lookup), ElementsAre(is(0, "7", "T_SIZE")));
    EXPECT_THAT(with_environment(table, scanned({"-size=", "-size=2"}).settings, lookup),
                ElementsAre(is(0, "", "-size"), is(0, "2", "-size")));
}

TEST(options, refusals_quote_the_value_and_stay_one_line) {
    EXPECT_EQ(refuse({.option = 0, .value = "a\nb", .source = "T_SIZE"}, {"no number"}).text,
              R"(T_SIZE "a\nb": no number)");
}

TEST(options, refusals_do_not_repeat_a_password) {
    const auto refusal = [](const char* value) {
        return refuse({.option = 0, .value = value, .source = "T_SIZE"}, {"no"}).text;
    };
    EXPECT_EQ(refusal("http://root:secret@h:1"), R"(T_SIZE "http://...@h:1": no)");
    EXPECT_EQ(refusal("http://a:1,https://root:s/e,c@r@h:1,http://b@c"),
              R"(T_SIZE "http://a:1,https://...@h:1,http://...@c": no)");
    EXPECT_EQ(refusal("http://h:1/a"), R"(T_SIZE "http://h:1/a": no)");
    EXPECT_EQ(refusal("a@b"), R"(T_SIZE "a@b": no)");
    EXPECT_EQ(refusal("://@://@"), R"(T_SIZE "://...@://...@": no)");
    EXPECT_EQ(why_not({"-sizes=http://root:secret@h:1"}),
              R"(unknown flag "-sizes=http://...@h:1")");
}

TEST(options, the_source_of_a_value_is_where_it_was_set_last) {
    const std::vector<setting> settings{{.option = 0, .value = "1", .source = "T_SIZE"},
                                        {.option = 0, .value = "2", .source = "-size"}};
    EXPECT_EQ(source_of(table, settings, "size"), "-size");
    EXPECT_EQ(source_of(table, settings, "colour"), "");
    EXPECT_EQ(source_of(table, {}, "size"), "");
}

TEST(options, the_table_has_no_column_that_would_be_empty) {
    constexpr std::array<option, 1> alone{option{.name = "fast", .help = "hurry"}};
    EXPECT_EQ(format_table(alone, "-"), "  -fast    hurry\n");
}

TEST(options, table_for_the_help) {
    EXPECT_EQ(format_table(table, "--"),
              "  --size    T_SIZE    1    how big\n"
              "  --colour  T_COLOUR  red  which\n"
              "  --fast                   hurry\n");
}

}  // namespace
}  // namespace monolock::config
