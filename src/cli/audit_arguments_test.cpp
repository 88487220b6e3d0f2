#include "cli/audit_arguments.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "cli/audit_tail.hpp"

namespace monolock::cli {
namespace {

using words = std::vector<const char*>;

std::string why_not(const words& given) {
    const auto parsed = parse_audit_arguments(given);
    const auto* const wrong = std::get_if<config::diagnostic>(&parsed);
    return wrong != nullptr ? wrong->text : "it parses";
}

// As behind every other command.
TEST(audit_arguments, help_behind_a_command) {
    for (const char* const verb : {"verify", "stats", "tail"}) {
        for (const char* const flag : {"--help", "-help", "-h"}) {
            const auto parsed = parse_audit_arguments(words{verb, flag});
            EXPECT_TRUE(std::holds_alternative<help>(parsed)) << verb << ' ' << flag;
        }
    }
}

TEST(audit_arguments, help_behind_files_but_not_behind_the_end_of_options) {
    EXPECT_TRUE(std::holds_alternative<help>(
        parse_audit_arguments(words{"report", "a.log", "-o", "b.html", "--help"})));
    EXPECT_TRUE(std::holds_alternative<help>(parse_audit_arguments(words{"verify", "a", "-h"})));
    const auto named =
        std::get<audit_verify_options>(parse_audit_arguments(words{"verify", "--", "--help"}));
    EXPECT_EQ(named.files, (std::vector<std::string>{"--help"}));
}

TEST(audit_arguments, verify) {
    const auto plain =
        std::get<audit_verify_options>(parse_audit_arguments(words{"verify", "a", "-"}));
    EXPECT_EQ(plain.files, (std::vector<std::string>{"a", "-"}));
    EXPECT_FALSE(plain.allowed.continued);
    EXPECT_FALSE(plain.allowed.crashes);
    const auto all = std::get<audit_verify_options>(
        parse_audit_arguments(words{"verify", "--continued", "-crashes", "--", "--file"}));
    EXPECT_TRUE(all.allowed.continued);
    EXPECT_TRUE(all.allowed.crashes);
    EXPECT_EQ(all.files, (std::vector<std::string>{"--file"}));
}

TEST(audit_arguments, stats_and_tail) {
    EXPECT_TRUE(
        std::get<audit_stats_options>(parse_audit_arguments(words{"stats", "--json", "a"})).json);
    const auto tail =
        std::get<audit_tail_options>(parse_audit_arguments(words{"tail", "-f", "-n", "3", "a"}));
    EXPECT_TRUE(tail.follow);
    EXPECT_EQ(tail.lines, 3U);
    EXPECT_EQ(tail.file, "a");
    EXPECT_TRUE(
        std::get<audit_tail_options>(parse_audit_arguments(words{"tail", "--follow", "a"})).follow);
}

TEST(audit_arguments, what_is_wrong) {
    EXPECT_EQ(why_not({}), "audit what? There are: verify, stats, report, tail");
    EXPECT_EQ(why_not({"prove"}),
              "unknown command audit \"prove\"; there are: verify, stats, report, tail");
    EXPECT_EQ(why_not({"verify"}), "no file is named");
    EXPECT_EQ(why_not({"verify", "--crash", "a"}), "unknown flag \"--crash\"");
    EXPECT_EQ(why_not({"tail", "a", "b"}), "stray argument \"b\": tail takes one file");
    EXPECT_EQ(why_not({"tail", "-n", "-1", "a"}), "-n \"-1\": must be a number");
    EXPECT_EQ(why_not({"tail", "-f", "-"}), "standard input cannot be followed");
}

TEST(audit_arguments, report) {
    const auto plain = std::get<audit_report_options>(
        parse_audit_arguments(words{"report", "a", "-", "-o", "page.html"}));
    EXPECT_EQ(plain.files, (std::vector<std::string>{"a", "-"}));
    EXPECT_EQ(plain.output, "page.html");
    EXPECT_FALSE(plain.lock || plain.since || plain.until);
    const auto all = std::get<audit_report_options>(
        parse_audit_arguments(words{"report", "--output=-", "--lock", "a*", "--since", "2026-03-01",
                                    "--until=2026-03-01T09:30", "--", "-a"}));
    EXPECT_EQ(all.files, (std::vector<std::string>{"-a"}));
    EXPECT_EQ(all.lock, "a*");
    EXPECT_EQ(*all.until - *all.since, std::chrono::minutes{570});
    EXPECT_EQ(why_not({"report", "-o", "a"}), "no file is named");
    EXPECT_EQ(why_not({"report", "a"}), "no page is named: -o FILE, or -o - for standard output");
    EXPECT_EQ(why_not({"report", "a", "-o", ""}),
              "-o \"\": must name a file; - is standard output");
    EXPECT_EQ(why_not({"report", "a", "-o", "b", "--since", "now"}),
              "--since \"now\": no time; write 2026-03-01 or 2026-03-01T09:30:00Z, in UTC");
    EXPECT_EQ(why_not({"report", "a", "-o", "b", "--until", "2026-03-01", "--since", "2026-03-01"}),
              "--until is not later than --since: nothing lies between");
    EXPECT_EQ(why_not({"report", "a", "-o", "b", "--lock", "\xFF"}),
              "--lock \"\\xff\": not valid UTF-8, which every lock name is");
}

TEST(audit_arguments, help_names_every_verb) {
    const auto text = std::get<help>(parse_audit_arguments(words{"--help"})).text;
    for (const char* const word :
         {"verify", "stats", "report", "tail", "--crashes", "--continued", "--since", "66"}) {
        EXPECT_NE(text.find(word), std::string::npos) << word;
    }
}

TEST(audit_tail, lines_for_people) {
    const std::string head = R"({"time":"2026-03-01T09:30:00.250Z","event":")";
    const std::string who = R"(","lock":"a b\n","identity":"worker","remote_addr":"192.0.2.1:5")";
    EXPECT_EQ(format_audit_line(head + "granted" + who + R"(,"token":7,"wait_ms":192000})", true),
              "2026-03-01T09:30:00.250Z  granted        \"a b\\n\"  token=7 waited=3m12s  "
              "192.0.2.1:5 worker\n");
    const std::string end = head + "released" + who + R"(,"token":7,"held_ms":5,"reason":")";
    EXPECT_EQ(format_audit_line(end + "graceful\"}", true),
              "2026-03-01T09:30:00.250Z  released       \"a b\\n\"  token=7 held=5ms graceful  "
              "192.0.2.1:5 worker\n");
    EXPECT_TRUE(format_audit_line(end + "expired\"}", true).starts_with("\x1b[33m2026"));
    EXPECT_TRUE(format_audit_line(end + "expired\"}", false).starts_with("2026"));
    EXPECT_EQ(format_audit_line(head + R"(audit_gap","lost":3})", false),
              "2026-03-01T09:30:00.250Z  audit_gap      lost=3\n");
    EXPECT_EQ(format_audit_line("\x1b[2J", false), "\"\\u{1b}[2J\"\n");
}

}  // namespace
}  // namespace monolock::cli
