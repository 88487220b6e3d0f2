#include "cli/shape.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "cli/admin/admin_arguments.hpp"
#include "cli/arguments.hpp"
#include "cli/audit_arguments.hpp"
#include "cli/health.hpp"

namespace monolock::cli {
namespace {

// What is wrong with a command line, whichever command it is of; empty if nothing is.
std::string wrong_with(const std::string& line) {
    std::istringstream in{line};
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    std::vector<const char*> pointers;
    for (const std::string& word : words) {
        pointers.push_back(word.c_str());
    }
    const auto nothing_set = [](const char*) -> const char* { return nullptr; };
    const auto of = [](const auto& parsed) {
        const auto* const why = std::get_if<config::diagnostic>(&parsed);
        return why == nullptr ? std::string{} : why->text;
    };
    if (words.front() == "audit") {
        return of(parse_audit_arguments(std::span{pointers}.subspan(1)));
    }
    if (words.front() == "health") {
        return of(parse_health_arguments(std::span{pointers}.subspan(1), nothing_set));
    }
    return is_admin_command(words.front()) ? of(parse_admin_arguments(pointers, nothing_set))
                                           : of(parse_arguments(pointers, nothing_set));
}

TEST(shape, every_command_is_one) {
    const config::program_shape program = shape();
    for (const config::command_shape& each : program.commands) {
        if (each.path.empty() || !config::commands_below(program, each.path).empty()) {
            continue;
        }
        const std::string line{each.path};
        EXPECT_EQ(wrong_with(line).find("unknown command"), std::string::npos) << line;
    }
    EXPECT_NE(wrong_with("leave").find("unknown command"), std::string::npos);
}

// The other way round: what the program says that there is has a shape.
TEST(shape, every_command_has_one) {
    const config::program_shape program = shape();
    std::string names;
    for (const config::command_shape* const each : config::commands_below(program, "")) {
        names += names.empty() ? "" : ", ";
        names += each->path;
    }
    EXPECT_EQ(wrong_with("leave"), "unknown command \"leave\"; there are: " + names);
    for (const std::string verb : {"verify", "stats", "report", "tail"}) {
        const auto below = config::commands_below(program, "audit");
        EXPECT_TRUE(std::any_of(below.begin(), below.end(), [&](const auto* each) {
            return config::last_word(each->path) == verb;
        })) << verb;
    }
}

TEST(shape, the_words_of_help_have_help) {
    for (const config::command_shape& each : shape().commands) {
        if (each.path == "help") {
            std::istringstream words{each.operands.front().words};
            for (std::string word; words >> word;) {
                EXPECT_EQ(wrong_with("help " + word), "") << word;
            }
            return;
        }
    }
    FAIL() << "no command help";
}

TEST(shape, words_that_a_value_may_be_are_taken) {
    for (const config::command_shape& each : shape().commands) {
        for (const config::option& row : each.options) {
            EXPECT_EQ(row.takes == config::value_kind::words, !row.words.empty()) << row.name;
        }
    }
}

}  // namespace
}  // namespace monolock::cli
