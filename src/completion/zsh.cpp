#include "completion/completion.hpp"

#include <algorithm>
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

// _arguments reads colons and brackets.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == ':' || c == '[' || c == ']') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

// _PROGRAM, _PROGRAM_audit_verify, …
std::string function_of(const program_shape& program, std::string_view path) {
    std::string out = "_" + std::string{program.name};
    if (!path.empty()) {
        out += "_";
        out += path;
    }
    return replaced(replaced(std::move(out), " ", "_"), "-", "_");
}

// "message:action" of a value.
std::string value_spec(const option& row) {
    const std::string message = escaped(row.name) + ":";
    switch (row.takes) {
        case value_kind::text:
            return message + " ";
        case value_kind::file:
            return message + "_files";
        case value_kind::words:
            return message + "(" + std::string{row.words} + ")";
    }
    return message + " ";
}

std::string option_spec(const option& row, std::string_view dashes) {
    std::string out = row.kind == option_kind::request ? "(- *)" : "";
    out += config::spelled(row.name, dashes);
    out += row.kind == option_kind::value ? "=" : "";
    out += "[" + escaped(row.help) + "]";
    if (row.kind == option_kind::value) {
        out += ":" + value_spec(row);
    }
    return out;
}

// Of one operand. "(-)": no options from there on. An empty list of matches, rather than none,
// leaves a flag that is the only match one that is inserted.
std::string operand_spec(const command_shape& command, std::size_t at) {
    const operand& each = command.operands[at];
    std::string out = command.options_anywhere ? "" : "(-)";
    if (each.kind == operand_kind::command) {
        return out + "*:::" + escaped(each.name) + ":_PROGRAM_nested";
    }
    out += each.repeated ? "*" : std::to_string(at + 1);
    out += ":" + escaped(each.name) + ":";
    switch (each.kind) {
        case operand_kind::file:
            return out + "_files";
        case operand_kind::words:
            return out + "(" + each.words + ")";
        case operand_kind::text:
        case operand_kind::command:
            return out + "()";
    }
    return out;
}

constexpr std::string_view nested = R"sh(
# A command line of its own.
_PROGRAM_nested() {
    if [[ $words[1] == -- ]] && (( CURRENT > 1 )); then
        shift words
        (( CURRENT-- ))
    fi
    _normal
}
)sh";

bool has_nested(const program_shape& program) {
    const auto is_command = [](const operand& each) { return each.kind == operand_kind::command; };
    return std::ranges::any_of(program.commands, [&](const command_shape& command) {
        return std::ranges::any_of(command.operands, is_command);
    });
}

// Behind a command stand others: which one is completed here, what follows by its own function.
std::string dispatch(const program_shape& program, const command_shape& command) {
    std::string names;
    std::string branches;
    for (const command_shape* const each : commands_below(program, command.path)) {
        const std::string name{config::last_word(each->path)};
        names += "                " +
                 quoted_for_shell(escaped(name) + ":" + std::string{each->summary}) + "\n";
        branches += "                " + name + ") " + function_of(program, each->path) + " ;;\n";
    }
    return "    case $state in\n"
           "        command)\n"
           "            local -a commands=(\n" +
           names +
           "            )\n"
           "            _describe -t commands command commands\n"
           "            ;;\n"
           "        rest)\n"
           "            case $line[1] in\n" +
           branches +
           "            esac\n"
           "            ;;\n"
           "    esac\n";
}

std::string function(const program_shape& program, const command_shape& command) {
    const bool group = !commands_below(program, command.path).empty();
    std::string out = function_of(program, command.path) + "() {\n";
    if (group) {
        out +=
            "    local curcontext=$curcontext state state_descr line\n"
            "    typeset -A opt_args\n";
    }
    out += "    _arguments -S";
    out += group ? " -C" : "";
    const auto add = [&out](const std::string& spec) {
        out += " \\\n        " + quoted_for_shell(spec);
    };
    for (const option& row : command.options) {
        if (!row.help.empty()) {
            add(option_spec(row, program.dashes));
        }
    }
    for (std::size_t at = 0; at < command.operands.size(); ++at) {
        add(operand_spec(command, at));
    }
    if (group) {
        add("(-)1:command:->command");
        add("(-)*::argument:->rest");
    }
    out += '\n';
    return out + (group ? dispatch(program, command) : "") + "}\n";
}

}  // namespace

std::string for_zsh(const program_shape& program) {
    std::string out =
        "#compdef PROGRAM\n"
        "# zsh completion for PROGRAM, made from the tables that it reads its words by.\n";
    for (const command_shape& each : program.commands) {
        out += '\n' + function(program, each);
    }
    out += has_nested(program) ? nested : "";
    out += '\n' + function_of(program, "") + " \"$@\"\n";
    return replaced(std::move(out), "PROGRAM", program.name);
}

}  // namespace monolock::completion
