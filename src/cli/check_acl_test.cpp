#include "cli/check_acl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/access_rules_json.hpp"

namespace monolock::cli {
namespace {

using testing::HasSubstr;
using words = std::vector<const char*>;

arguments parse(words what) {
    what.insert(what.begin(), "check-acl");
    return parse_arguments(what, [](const char*) -> const char* { return nullptr; });
}

check_acl_options options_of(const words& what) {
    const auto out = parse(what);
    const auto* const wrong = std::get_if<config::diagnostic>(&out);
    EXPECT_TRUE(std::holds_alternative<check_acl_options>(out)) << (wrong ? wrong->text : "help");
    return std::holds_alternative<check_acl_options>(out) ? std::get<check_acl_options>(out)
                                                          : check_acl_options{};
}

std::string why_not(const words& what) {
    const auto out = parse(what);
    const auto* const wrong = std::get_if<config::diagnostic>(&out);
    EXPECT_NE(wrong, nullptr);
    return wrong ? wrong->text : "";
}

TEST(check_acl, a_file_alone_or_with_a_question) {
    EXPECT_EQ(options_of({"acl.json"}).file, "acl.json");
    EXPECT_FALSE(options_of({"acl.json"}).asked);
    for (const words& order : {words{"acl.json", "--identity", "a", "--lock=x"},
                               words{"--lock", "x", "acl.json", "-identity", "a"},
                               words{"--identity=a", "--lock=x", "--", "acl.json"}}) {
        const check_acl_options out = options_of(order);
        EXPECT_EQ(out.file, "acl.json");
        ASSERT_TRUE(out.asked);
        EXPECT_EQ(out.asked->identity, "a");
        EXPECT_EQ(out.asked->lock, "x");
    }
    EXPECT_EQ(options_of({"--", "-odd.json"}).file, "-odd.json");
    EXPECT_EQ(options_of({"f", "--identity", "-*", "--lock", "*"}).asked->lock, "*");
}

TEST(check_acl, mistakes_get_a_hint) {
    EXPECT_EQ(why_not({}), "no file; write: check-acl FILE");
    EXPECT_EQ(why_not({"f", "--identity", "a"}), "--identity needs --lock as well");
    EXPECT_EQ(why_not({"--lock", "x", "f"}), "--lock needs --identity as well");
    EXPECT_EQ(why_not({"f", "g"}), "stray argument \"g\"");
    EXPECT_EQ(why_not({"f", "--who", "a"}), "unknown flag \"--who\"");
    EXPECT_EQ(why_not({"f", "--lock"}), "--lock needs a value");
    EXPECT_EQ(why_not({"f", "--identity", "", "--lock", "x"}),
              "--identity \"\": no client has an empty identity");
    EXPECT_THAT(why_not({"f", "--identity", "\xFF", "--lock", "x"}), HasSubstr("not valid UTF-8"));
    EXPECT_EQ(why_not({"f", "--identity", "a", "--lock", ""}), "--lock \"\": empty lock name");
    EXPECT_THAT(why_not({"f", "--identity=a", "--lock", std::string(256, 'x').c_str()}),
                HasSubstr("lock name too long"));
}

TEST(check_acl, help) {
    for (const words& spelling : {words{"-h"}, words{"f", "--help"}}) {
        EXPECT_EQ(std::get<help>(parse(spelling)).text, check_acl_help().text);
    }
    EXPECT_EQ(std::get<help>(parse_arguments(words{"help", "check-acl"}, {})).text,
              check_acl_help().text);
    for (const char* const part : {"FILE", "--identity", "--lock", " 0 ", " 1 ", " 2 ", " 77 "}) {
        EXPECT_THAT(check_acl_help().text, HasSubstr(part));
    }
    EXPECT_THAT(std::get<help>(parse_arguments(words{"help"}, {})).text,
                HasSubstr("monolockctl check-acl FILE"));
}

check_acl_answer answer_to(const words& question, const std::string& text) {
    return answer(options_of(question), config::parse_access_rules("f", text));
}

constexpr const char* rules =
    R"({"rules":[{"identity":"a","locks":["x"]},{"identity":"*","locks":["q","d\n*"]}]})";

TEST(check_acl, says_whether_the_file_is_valid) {
    EXPECT_EQ(answer_to({"f"}, rules).text, "valid: 2 rules\n");
    EXPECT_EQ(answer_to({"f"}, rules).status, 0);
    const auto bad = answer_to({"f"}, R"({"rules":[{"identity":1,"locks":[]}]})");
    EXPECT_EQ(bad.text, "");
    EXPECT_EQ(bad.wrong.size(), 2U);
    EXPECT_EQ(bad.status, 1);
    EXPECT_EQ(answer_to({"f", "--identity=a", "--lock=x"}, "{}").status, 1)
        << "nothing is allowed or denied by a file that is not valid";
}

TEST(check_acl, says_whether_a_claim_is_allowed_and_by_which_rule) {
    const auto allowed = answer_to({"f", "--identity=b", "--lock=d\nb"}, rules);
    EXPECT_EQ(allowed.text, "allowed by rule /rules/1: identity \"*\", lock \"d\\n*\"\n");
    EXPECT_EQ(allowed.status, 0);
    const auto denied = answer_to({"f", "--identity=b", "--lock=x"}, rules);
    EXPECT_EQ(denied.text, "denied: no rule permits it\n");
    EXPECT_EQ(denied.status, 77);
}

}  // namespace
}  // namespace monolock::cli
