#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace monolock::config {

// The command line of a program as data, made of the very tables that it is read by: what completes
// command lines and what checks the manual pages start from here. Texts are literals.

enum class operand_kind {
    text,     // a lock's name, an address: nothing that a shell could know
    file,     // a path
    command,  // a program's name; all that follows is that program's
    words,    // one of a few
};

struct operand {
    std::string_view name;  // as the usage line has it: NAME, FILE
    operand_kind kind = operand_kind::text;
    bool repeated = false;  // any number of them; the last one only
    std::string words{};    // with blanks between them
};

// What is read after the words of one command.
struct command_shape {
    std::string_view path;     // "run", "audit verify"; empty: before any command
    std::string_view summary;  // one line
    std::vector<option> options;
    std::vector<operand> operands;
    bool options_anywhere = true;  // else they end at the first operand
};

// A command whose path is the beginning of others', "audit", takes one of these and nothing else.
struct program_shape {
    std::string_view name;
    std::string_view dashes;  // how it writes its flags
    std::vector<command_shape> commands;
};

// The words that may stand behind the command of that path: "run", "locks", … for the empty one.
[[nodiscard]] std::vector<const command_shape*> commands_below(const program_shape& program,
                                                               std::string_view path);

// The last word of a path.
[[nodiscard]] std::string_view last_word(std::string_view path);

// "run      acquire …", a line for each command below `path`.
[[nodiscard]] std::string format_commands(const program_shape& program, std::string_view path);

}  // namespace monolock::config
