#include "completion/completion.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "completion/text.hpp"

namespace monolock::completion {

namespace {

using config::command_shape;
using config::operand;
using config::operand_kind;
using config::option;
using config::option_kind;
using config::program_shape;
using config::value_kind;

constexpr std::string_view walk = R"sh(
# The command that the words before the cursor are for, "closed" if no more options follow, and its operands.
function __fish_PROGRAM_state
    set -l words (commandline -opc)
    set -e words[1]
    set -l command ''
    set -l closed open
    set -l operands
    while set -q words[1]
        set -l word $words[1]
        set -e words[1]
        if test $closed = open -a "$word" = --
            set closed closed
        else if test $closed = open; and string match -qr -- '^-.' $word
            string match -q -- '*=*' $word
            and continue
            contains -- "$command/"(string replace -r -- '^--?' '' $word) $__fish_PROGRAM_values
            and set -e words[1]
        else if not set -q operands[1]; and contains -- (string trim -- "$command $word") $__fish_PROGRAM_commands
            set command (string trim -- "$command $word")
        else
            set -a operands $word
            contains -- "$command" $__fish_PROGRAM_options_first
            and set closed closed
        end
    end
    string join -- \n "$command" $closed $operands
end

function __fish_PROGRAM_options_of --argument-names command
    set -l state (__fish_PROGRAM_state)
    test "$state[1]" = "$command" -a $state[2] = open
end

# Whether the operand of that number (or, with two, one from the first on) of the command is next.
function __fish_PROGRAM_operand --argument-names command number or_more
    set -l state (__fish_PROGRAM_state)
    set -l given (math (count $state) - 2)
    test "$state[1]" = "$command"
    and test $given = $number -o \( -n "$or_more" -a $given -gt $number \)
end

# A command line behind NAME, completed as what it is.
function __fish_PROGRAM_nested
    set -l words (__fish_PROGRAM_state)[4..]
    test "$words[1]" = --
    and set -e words[1]
    complete -C (string join -- ' ' (string escape -- $words) (commandline -ct))
end
)sh";

// "set -g NAME 'a' 'b'".
class list_of {
public:
    explicit list_of(std::string_view name) {
        text_ += "set -g __fish_PROGRAM_" + std::string{name};
    }

    void add(std::string_view word) { text_ += " " + quoted_for_shell(word); }

    [[nodiscard]] std::string end() && { return std::move(text_) + "\n"; }

private:
    std::string text_;
};

std::string tables(const program_shape& program) {
    list_of commands{"commands"};
    list_of values{"values"};
    list_of options_first{"options_first"};
    for (const command_shape& each : program.commands) {
        if (!each.path.empty()) {
            commands.add(each.path);
        }
        if (!each.options_anywhere) {
            options_first.add(each.path);
        }
        for (const option& row : each.options) {
            if (row.kind == option_kind::value) {
                values.add(std::string{each.path} + "/" + std::string{row.name});
            }
        }
    }
    return std::move(commands).end() + std::move(values).end() + std::move(options_first).end();
}

std::string condition(std::string_view what, std::string_view path, std::string_view more = "") {
    std::string words = "__fish_PROGRAM_" + std::string{what} + " \"" + std::string{path} + "\"";
    words += more;
    return "complete -c PROGRAM -n " + quoted_for_shell(words);
}

std::string line_of(const program_shape& program, const command_shape& command, const option& row) {
    std::string out = condition("options_of", command.path);
    out += config::spelled(row.name, program.dashes).starts_with("--") ? " -l " : " -o ";
    out += row.name;
    if (row.kind == option_kind::value) {
        switch (row.takes) {
            case value_kind::text:
                out += " -x";
                break;
            case value_kind::file:
                out += " -r -F";
                break;
            case value_kind::words:
                out += " -x -a " + quoted_for_shell(row.words);
                break;
        }
    }
    return out + " -d " + quoted_for_shell(row.help) + "\n";
}

std::string line_of(const command_shape& command, std::size_t at) {
    const operand& it = command.operands[at];
    std::string out = condition("operand", command.path,
                                " " + std::to_string(at) + (it.repeated ? " or_more" : ""));
    switch (it.kind) {
        case operand_kind::text:
            return {};
        case operand_kind::file:
            return out + " -F\n";
        case operand_kind::words:
            return out + " -a " + quoted_for_shell(it.words) + "\n";
        case operand_kind::command:
            return out + " -a '(__fish_PROGRAM_nested)'\n";
    }
    return {};
}

}  // namespace

std::string for_fish(const program_shape& program) {
    std::string out =
        "# fish completion for PROGRAM, made from the tables that it reads its words by.\n\n" +
        tables(program);
    out += walk;
    out += "\ncomplete -c PROGRAM -f\n";
    for (const command_shape& command : program.commands) {
        for (const command_shape* const below : commands_below(program, command.path)) {
            out += condition("operand", command.path, " 0") + " -a " +
                   std::string{config::last_word(below->path)} + " -d " +
                   quoted_for_shell(below->summary) + "\n";
        }
        for (const option& row : command.options) {
            out += row.help.empty() ? "" : line_of(program, command, row);
        }
        for (std::size_t at = 0; at < command.operands.size(); ++at) {
            out += line_of(command, at);
        }
    }
    return replaced(std::move(out), "PROGRAM", program.name);
}

}  // namespace monolock::completion
