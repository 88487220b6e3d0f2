#include "config/access_rules_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace monolock::config {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

access_rules rules_of(std::string text) {
    auto rules = parse_access_rules("acl.json", std::move(text));
    EXPECT_TRUE(rules) << (rules ? "" : joined(rules.error()));
    return rules ? *std::move(rules) : access_rules{};
}

// What is wrong with the text, a line each; never the name of the file alone.
std::vector<std::string> wrongs_of(std::string text, std::string_view file = "acl.json") {
    const auto rules = parse_access_rules(file, std::move(text));
    EXPECT_FALSE(rules);
    std::vector<std::string> lines;
    for (const diagnostic& each : rules ? diagnostics{} : rules.error()) {
        EXPECT_EQ(each.text.find('\n'), std::string::npos);
        lines.push_back(each.text);
    }
    EXPECT_FALSE(lines.empty());
    return lines;
}

std::string wrong_of(std::string text) {
    const auto lines = wrongs_of(std::move(text));
    EXPECT_EQ(lines.size(), 1U) << testing::PrintToString(lines);
    return lines.front();
}

TEST(access_rules_json, reads_rules) {
    const access_rules rules = rules_of(R"({"rules": [
        {"identity": "spiffe://prod/*", "locks": ["db/*", "cache"]},
        {"locks": ["\u00fc\u0000"], "identity": "a\"b"}
    ]})");
    EXPECT_EQ(rules, (access_rules{{{.identity = "spiffe://prod/*", .locks = {"db/*", "cache"}},
                                    {.identity = "a\"b", .locks = {"\xC3\xBC\0"s}}}}));
}

TEST(access_rules_json, no_rules_deny_everything) {
    EXPECT_EQ(rules_of(R"({"rules":[]})").size(), 0U);
    EXPECT_EQ(rules_of(" \t\r\n{ \"rules\" : [ ] }\n").size(), 0U);
}

TEST(access_rules_json, a_file_that_cannot_be_read) {
    const auto rules = parse_access_rules("acl.json", diagnostic{"No such file or directory"});
    ASSERT_FALSE(rules);
    EXPECT_EQ(joined(rules.error()), "acl.json: No such file or directory");
}

TEST(access_rules_json, the_document_has_rules_and_nothing_else) {
    EXPECT_EQ(wrong_of("{}"), "acl.json: must have the key \"rules\"");
    EXPECT_EQ(wrong_of("[]"), "acl.json: must be an object, is an array");
    EXPECT_EQ(wrong_of("null"), "acl.json: must be an object, is null");
    EXPECT_EQ(wrong_of("\"rules\""), "acl.json: must be an object, is a string");
    EXPECT_EQ(wrong_of("-1"), "acl.json: must be an object, is a number");
    EXPECT_EQ(wrong_of("true"), "acl.json: must be an object, is a boolean");
    EXPECT_EQ(wrong_of(R"({"rules":{}})"), "acl.json: /rules: must be an array, is an object");
    EXPECT_EQ(wrong_of(R"({"rules":null})"), "acl.json: /rules: must be an array, is null");
    EXPECT_EQ(wrong_of(R"({"rules":[],"rule":[]})"),
              "acl.json: /rule: unknown key; there is only \"rules\"");
    EXPECT_THAT(wrongs_of(R"({"Rules":[]})"),
                ElementsAre("acl.json: /Rules: unknown key; there is only \"rules\"",
                            "acl.json: must have the key \"rules\""));
}

TEST(access_rules_json, a_key_that_comes_twice_is_found_at_every_level) {
    EXPECT_EQ(wrong_of(R"({"rules":[],"rules":[]})"), "acl.json: /rules: duplicate key");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x"],"identity":"*"}]})"),
              "acl.json: /rules/0/identity: duplicate key");
    EXPECT_EQ(wrong_of(R"({"rules":[{"locks":["x"],"identity":"a","locks":["*"]}]})"),
              "acl.json: /rules/0/locks: duplicate key");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x"],"id\u0065ntity":"*"}]})"),
              "acl.json: /rules/0/identity: duplicate key")
        << "however it is spelled";
    EXPECT_THAT(wrongs_of(R"({"rules":[],"x":1,"x":[]})"),
                ElementsAre("acl.json: /x: unknown key; there is only \"rules\"",
                            "acl.json: /x: duplicate key"));
}

// The keys of one rule say nothing about the next.
TEST(access_rules_json, keys_are_counted_for_each_rule) {
    EXPECT_EQ(
        rules_of(R"({"rules":[{"identity":"a","locks":["x"]},{"identity":"a","locks":["x"]}]})")
            .size(),
        2U);
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x"]},{"identity":"a"}]})"),
              "acl.json: /rules/1: must have \"locks\"");
}

TEST(access_rules_json, a_rule_has_an_identity_and_locks) {
    EXPECT_THAT(wrongs_of(R"({"rules":[{}]})"),
                ElementsAre("acl.json: /rules/0: must have an \"identity\"",
                            "acl.json: /rules/0: must have \"locks\""));
    EXPECT_EQ(wrong_of(R"({"rules":["x"]})"), "acl.json: /rules/0: must be an object, is a string");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":["a"],"locks":["x"]}]})"),
              "acl.json: /rules/0/identity: must be a string, is an array");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":7,"locks":["x"]}]})"),
              "acl.json: /rules/0/identity: must be a string, is a number");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":"x"}]})"),
              "acl.json: /rules/0/locks: must be an array, is a string");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":[]}]})"),
              "acl.json: /rules/0/locks: must have at least one pattern");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x",true]}]})"),
              "acl.json: /rules/0/locks/1: must be a string, is a boolean");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":[["x"]]}]})"),
              "acl.json: /rules/0/locks/0: must be a string, is an array");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x"],"comment":"y"}]})"),
              "acl.json: /rules/0/comment: unknown key; a rule has \"identity\" and \"locks\"");
}

TEST(access_rules_json, an_empty_pattern_is_a_mistake) {
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"","locks":["x"]}]})"),
              "acl.json: /rules/0/identity: must not be empty: no client has an empty identity");
    EXPECT_EQ(wrong_of(R"({"rules":[{"identity":"a","locks":["x",""]}]})"),
              "acl.json: /rules/0/locks/1: must not be empty: no lock has an empty name");
}

TEST(access_rules_json, tells_everything_at_once_each_with_its_place) {
    EXPECT_THAT(wrongs_of(R"({"rules": [
        {"identity": 1, "locks": [2, "x", null]},
        {"identity": "a", "locks": ["x"]},
        17,
        {"identity": {"deep": [{"identity": 1, "identity": 2}]}, "looks": ["x"]}
    ], "version": {"rules": 1}})"),
                ElementsAre("acl.json: /rules/0/identity: must be a string, is a number",
                            "acl.json: /rules/0/locks/0: must be a string, is a number",
                            "acl.json: /rules/0/locks/2: must be a string, is null",
                            "acl.json: /rules/2: must be an object, is a number",
                            "acl.json: /rules/3/identity: must be a string, is an object",
                            "acl.json: /rules/3/looks: unknown key; a rule has \"identity\" and "
                            "\"locks\"",
                            "acl.json: /rules/3: must have \"locks\"",
                            "acl.json: /version: unknown key; there is only \"rules\""));
}

TEST(access_rules_json, of_very_many_the_first_are_told_and_the_rest_counted) {
    std::string text = R"({"rules":[0)";
    for (int rule = 1; rule < 250; ++rule) {
        text += ",0";
    }
    const auto lines = wrongs_of(text + "]}");
    ASSERT_EQ(lines.size(), 101U);
    EXPECT_THAT(lines[99], StartsWith("acl.json: /rules/99: "));
    EXPECT_EQ(lines[100], "acl.json: and 150 more");
}

TEST(access_rules_json, a_syntax_error_has_its_line_and_column) {
    EXPECT_THAT(wrong_of(""), StartsWith("acl.json:1:1: syntax error"));
    EXPECT_THAT(wrong_of("\n\n"), StartsWith("acl.json:3:1: syntax error"));
    EXPECT_THAT(wrong_of("{rules:[]}"), StartsWith("acl.json:1:2: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":\n  [,]}"), StartsWith("acl.json:2:4: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":[]}\n}"), StartsWith("acl.json:2:1: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":[]} // all"), StartsWith("acl.json:1:14: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":[],}"), StartsWith("acl.json:1:13: syntax error"));
    EXPECT_THAT(wrong_of("{'rules':[]}"), StartsWith("acl.json:1:2: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":[NaN]}"), StartsWith("acl.json:1:11: syntax error"));
    EXPECT_EQ(wrong_of("{\"rules\" []}"),
              "acl.json:1:10: syntax error while parsing object separator - unexpected '['; "
              "expected ':'");
}

TEST(access_rules_json, columns_count_characters) {
    EXPECT_THAT(wrongs_of("{\"rules\":[\"\u00FC\u20AC\U0001F512\" 1]}").back(),
                StartsWith("acl.json:1:17: syntax error"));
}

TEST(access_rules_json, what_was_wrong_before_a_syntax_error_is_told_too) {
    EXPECT_THAT(wrongs_of("{\"rules\":[{\"id\":1},\n]"),
                ElementsAre(HasSubstr("/rules/0/id: unknown key"),
                            HasSubstr("/rules/0: must have an \"identity\""),
                            HasSubstr("/rules/0: must have \"locks\""),
                            StartsWith("acl.json:2:1: syntax error")));
}

TEST(access_rules_json, half_a_file_is_no_file) {
    const std::string whole = R"({"rules":[{"identity":"a*","locks":["x","y/*"]},)"
                              R"({"identity":"b","locks":["z"]}]})";
    EXPECT_EQ(rules_of(whole).size(), 2U);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_THAT(wrongs_of(whole.substr(0, size)).back(),
                    StartsWith("acl.json:1:" + std::to_string(size + 1) + ": syntax error"));
    }
}

TEST(access_rules_json, text_that_is_not_utf8) {
    EXPECT_THAT(wrong_of("{\"rules\":[{\"identity\":\"\xC3(\",\"locks\":[\"x\"]}]}"),
                HasSubstr("ill-formed UTF-8"));
    EXPECT_THAT(wrong_of("{\"rules\":[{\"identity\":\"\xED\xA0\x80\",\"locks\":[\"x\"]}]}"),
                HasSubstr("ill-formed UTF-8"));
    EXPECT_THAT(wrong_of(R"({"rules":[{"identity":"\ud800","locks":["x"]}]})"),
                HasSubstr("surrogate"));
    EXPECT_THAT(wrong_of("{\"rules\":[]}\xFF"), StartsWith("acl.json:1:13: syntax error"));
    EXPECT_THAT(wrong_of("{\"rules\":[]}\n\xC2\xA0"), StartsWith("acl.json:2:1: syntax error"))
        << "a space of no JSON";
}

TEST(access_rules_json, no_byte_order_mark) {
    EXPECT_EQ(wrong_of("\xEF\xBB\xBF{\"rules\":[]}"),
              "acl.json:1:1: begins with a byte order mark; JSON has none");
}

// The library takes a NUL for the end of the text.
TEST(access_rules_json, a_nul_does_not_end_the_text) {
    EXPECT_EQ(wrong_of("{\"rules\":[]}\0"s),
              "acl.json:1:13: a NUL; the file is damaged or no text");
    EXPECT_EQ(wrong_of("{\"rules\":\n[]}\0, \"x\": 1"s),
              "acl.json:2:4: a NUL; the file is damaged or no text");
    EXPECT_EQ(wrong_of("\0\0\0"s), "acl.json:1:1: a NUL; the file is damaged or no text");
    EXPECT_THAT(wrong_of("{\"rules\":[{\"identity\":\"a\0\",\"locks\":[\"x\"]}]}"s),
                HasSubstr("acl.json:1:25: a NUL"));
}

TEST(access_rules_json, numbers_out_of_range_are_no_patterns_either) {
    EXPECT_THAT(wrong_of(R"({"rules":[{"identity":1e999,"locks":["x"]}]})"),
                HasSubstr("a number out of range"));
    EXPECT_EQ(wrong_of(R"({"rules":[123456789012345678901234567890]})"),
              "acl.json: /rules/0: must be an object, is a number");
}

// A recursive reader would use up its stack.
TEST(access_rules_json, deep_nesting_is_passed_over) {
    constexpr std::size_t depth = 1'000'000;
    const std::string open(depth, '[');
    const std::string close(depth, ']');
    EXPECT_EQ(wrong_of(R"({"rules":[)" + open + close + "]}"),
              "acl.json: /rules/0: must be an object, is an array");
    EXPECT_THAT(wrongs_of(open), ElementsAre("acl.json: must be an object, is an array",
                                             StartsWith("acl.json:1:1000001: syntax error")));
    std::string objects;
    for (std::size_t level = 0; level < depth / 10; ++level) {
        objects += R"({"a":)";
    }
    EXPECT_THAT(wrongs_of(objects).back(), HasSubstr("syntax error"));
}

TEST(access_rules_json, keys_are_escaped_as_pointers_and_as_text) {
    EXPECT_THAT(wrong_of(R"({"rules":[],"a/b~c":1})"), StartsWith("acl.json: /a~1b~0c: unknown"));
    EXPECT_THAT(wrong_of(R"({"rules":[],"x\ny: forged":1})"),
                StartsWith("acl.json: \"/x\\ny: forged\": unknown"));
    EXPECT_THAT(wrong_of("{\"rules\":[],\"\\u2028\\u001b[2J\":1}"),
                StartsWith("acl.json: \"/\\u{2028}\\u{1b}[2J\": unknown"));
    EXPECT_THAT(wrong_of(R"({"rules":[],"":1})"), StartsWith("acl.json: /: unknown"));
    EXPECT_EQ(wrong_of("{\"rules\":[],\"" + std::string(100'000, 'k') + "\":1}"),
              "acl.json: /" + std::string(64, 'k') + "...: unknown key; there is only \"rules\"");
}

TEST(access_rules_json, a_syntax_error_repeats_nothing_of_the_file) {
    EXPECT_THAT(wrong_of("{\"rules\":[\"\xE2\x80\xA8; expected all\x01"),
                testing::AllOf(testing::Not(HasSubstr("\xE2\x80\xA8")),
                               testing::Not(HasSubstr("expected all"))));
    EXPECT_THAT(wrong_of("{\"rules\": ; expected nothing; last read: 'x"),
                testing::Not(HasSubstr("nothing")));
}

TEST(access_rules_json, the_name_of_the_file_is_escaped) {
    EXPECT_THAT(wrongs_of("{}", "my\nfile"), ElementsAre(StartsWith("\"my\\nfile\": must have")));
    EXPECT_THAT(wrongs_of("", "my file"), ElementsAre(StartsWith("\"my file\":1:1: syntax")));
}

TEST(access_rules_json, a_large_file_is_read_in_a_moment) {
    std::string text = R"({"rules":[)";
    for (int rule = 0; rule < 50'000; ++rule) {
        text += (rule > 0 ? ",\n" : "\n") + R"({"identity":"spiffe://example.org/service-)"s +
                std::to_string(rule) + R"(/*","locks":["service-)" + std::to_string(rule) +
                R"(/*","shared/?"]})";
    }
    text += "]}";
    ASSERT_LT(text.size(), access_rules_bytes_max);
    const access_rules rules = rules_of(std::move(text));
    EXPECT_EQ(rules.size(), 50'000U);
    EXPECT_TRUE(rules.permits("spiffe://example.org/service-4711/a", "service-4711/x"));
    EXPECT_FALSE(rules.permits("spiffe://example.org/service-4711/a", "service-4712/x"));
}

}  // namespace
}  // namespace monolock::config
