#include "config/program_shape.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "config/server_config.hpp"

namespace monolock::config {
namespace {

const program_shape example{
    .name = "tool",
    .dashes = "--",
    .commands = {{.path = "", .summary = "", .options = {}, .operands = {}},
                 {.path = "run", .summary = "one", .options = {}, .operands = {}},
                 {.path = "audit", .summary = "two", .options = {}, .operands = {}},
                 {.path = "audit tail", .summary = "three", .options = {}, .operands = {}}}};

TEST(program_shape, commands_stand_below_their_path) {
    const auto top = commands_below(example, "");
    ASSERT_EQ(top.size(), 2U);
    EXPECT_EQ(top[0]->path, "run");
    EXPECT_EQ(top[1]->path, "audit");
    const auto audit = commands_below(example, "audit");
    ASSERT_EQ(audit.size(), 1U);
    EXPECT_EQ(last_word(audit[0]->path), "tail");
    EXPECT_TRUE(commands_below(example, "run").empty());
}

TEST(program_shape, a_table_of_commands_has_two_columns) {
    EXPECT_EQ(format_commands(example, ""), "run    one\naudit  two\n");
    EXPECT_EQ(format_commands(example, "audit"), "tail  three\n");
}

// What a shell offers, the server takes; and nothing else is one of a few words.
TEST(program_shape, words_of_the_server_are_taken_by_it) {
    int tried = 0;
    const program_shape server = server_shape();
    for (const option& row : server.commands.front().options) {
        EXPECT_EQ(row.takes == value_kind::words, !row.words.empty()) << row.name;
        std::istringstream words{std::string{row.words}};
        for (std::string word; words >> word; ++tried) {
            const std::string flag = "-" + std::string{row.name} + "=" + word;
            const std::vector<const char*> line{flag.c_str()};
            const auto parsed =
                parse_server_arguments(line, [](const char*) -> const char* { return nullptr; });
            EXPECT_TRUE(std::holds_alternative<server_config>(parsed)) << flag;
        }
    }
    EXPECT_EQ(tried, 6);
}

}  // namespace
}  // namespace monolock::config
