#include "completion/completion.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "completion/text.hpp"

namespace monolock::completion {

namespace {

using config::operand_kind;
using config::option;
using config::option_kind;
using config::value_kind;

// What differs between programs are four questions, answered by a `case` each; how to walk the
// words is the same.
constexpr std::string_view walk = R"sh(
_PROGRAM()
{
    local cur prev words cword
    _init_completion -n =: || return

    # The words before the cursor, as the program reads them.
    local command='' operands=0 first=0 closed='' value='' i name word
    for ((i = 1; i < cword; i++)); do
        word=${words[i]}
        if [[ -z $closed && $word == -- ]]; then
            closed=yes
        elif [[ -z $closed && $word == -?* ]]; then
            [[ $word == *=* ]] && continue
            name=${word#-}
            value=$(_PROGRAM_value "$command" "${name#-}")
            [[ $value ]] && ((++i < cword)) && value=''
        elif [[ $operands == 0 && " $(_PROGRAM_commands "$command") " == *" $word "* ]]; then
            command+=${command:+ }$word
        else
            ((operands++ == 0)) && first=$i
            [[ $(_PROGRAM_options "$command") == first ]] && closed=yes
        fi
    done

    if [[ -z $value && -z $closed && $cur == -*=* ]]; then
        name=${cur#-}
        name=${name#-}
        value=$(_PROGRAM_value "$command" "${name%%=*}")
        cur=${cur#*=}
    elif [[ -z $value && -z $closed && $cur == -* ]]; then
        _PROGRAM_complete_flag "$command"
        return
    elif [[ -z $value ]]; then
        value="words $(_PROGRAM_commands "$command")"
        ((operands == 0)) && [[ $value != 'words ' ]] || value=$(_PROGRAM_operand "$command" "$operands")
    fi

    case $value in
        file) _filedir ;;
        words*) COMPREPLY=($(compgen -W "${value#words }" -- "$cur")) ;;
        command)
            # All behind NAME is a command line of its own. Readline has taken words apart at = and :.
            local piece taken=0
            ((++first))
            ((first < cword)) && [[ ${words[first]} == -- ]] && ((++first))
            for ((i = 0; i < first; i++)); do
                piece=${COMP_WORDS[taken++]}
                while [[ $piece != "${words[i]}" && $taken -lt ${#COMP_WORDS[@]} ]]; do
                    piece+=${COMP_WORDS[taken++]}
                done
            done
            _command_offset "$taken"
            ;;
    esac
} &&
    complete -F _PROGRAM PROGRAM
)sh";

// Both spellings are read; what is begun with two dashes goes on with two.
constexpr std::string_view complete_flag_one_dash = R"sh(
_PROGRAM_complete_flag()  # COMMAND
{
    if [[ $cur == --* ]]; then
        COMPREPLY=($(compgen -P - -W "$(_PROGRAM_flags "$1")" -- "${cur#-}"))
    else
        COMPREPLY=($(compgen -W "$(_PROGRAM_flags "$1")" -- "$cur"))
    fi
}
)sh";
constexpr std::string_view complete_flag_two_dashes = R"sh(
_PROGRAM_complete_flag()  # COMMAND
{
    COMPREPLY=($(compgen -W "$(_PROGRAM_flags "$1")" -- "$cur"))
}
)sh";

// What `value` is in the walk above.
std::string kind_of(const option& row) {
    switch (row.takes) {
        case value_kind::text:
            return "text";
        case value_kind::file:
            return "file";
        case value_kind::words:
            return "words " + std::string{row.words};
    }
    return "text";
}

std::string kind_of(const config::operand& each) {
    switch (each.kind) {
        case operand_kind::text:
            return "text";
        case operand_kind::file:
            return "file";
        case operand_kind::command:
            return "command";
        case operand_kind::words:
            return "words " + each.words;
    }
    return "text";
}

// One function: for each pattern what it prints.
class question {
public:
    question(std::string_view name, std::string_view asked_with) {
        text_ += "_PROGRAM_";
        text_ += name;
        text_ += "()  # ";
        text_ += asked_with;
        text_ += asked_with == "COMMAND" ? "\n{\n    case $1 in\n" : "\n{\n    case $1/$2 in\n";
    }

    void answer(const std::string& pattern, std::string_view said) {
        text_ += "        " + pattern + ") echo " + quoted_for_shell(said) + " ;;\n";
    }

    [[nodiscard]] std::string end() && { return std::move(text_) + "    esac\n}\n"; }

private:
    std::string text_;
};

std::string commands(const config::program_shape& program) {
    question asked{"commands", "COMMAND"};
    for (const config::command_shape& each : program.commands) {
        std::string names;
        for (const config::command_shape* const below : commands_below(program, each.path)) {
            names += names.empty() ? "" : " ";
            names += config::last_word(below->path);
        }
        if (!names.empty()) {
            asked.answer(quoted_for_shell(each.path), names);
        }
    }
    return std::move(asked).end();
}

std::string flags(const config::program_shape& program) {
    question asked{"flags", "COMMAND"};
    for (const config::command_shape& each : program.commands) {
        std::string names;
        for (const option& row : each.options) {
            if (!row.help.empty()) {
                names += names.empty() ? "" : " ";
                names += config::spelled(row.name, program.dashes);
            }
        }
        asked.answer(quoted_for_shell(each.path), names);
    }
    return std::move(asked).end();
}

std::string values(const config::program_shape& program) {
    question asked{"value", "COMMAND FLAG: file, text or words; nothing if it takes none"};
    for (const config::command_shape& each : program.commands) {
        for (const option& row : each.options) {
            if (row.kind == option_kind::value) {
                asked.answer(quoted_for_shell(each.path) + "/" + std::string{row.name},
                             kind_of(row));
            }
        }
    }
    return std::move(asked).end();
}

std::string operands(const config::program_shape& program) {
    question asked{"operand", "COMMAND NUMBER: file, text, words or command"};
    for (const config::command_shape& each : program.commands) {
        for (std::size_t at = 0; at < each.operands.size(); ++at) {
            const config::operand& it = each.operands[at];
            const std::string number = it.repeated ? "*" : std::to_string(at);
            asked.answer(quoted_for_shell(each.path) + "/" + number, kind_of(it));
        }
    }
    return std::move(asked).end();
}

std::string where_options_end(const config::program_shape& program) {
    question asked{"options", "COMMAND"};
    for (const config::command_shape& each : program.commands) {
        if (!each.options_anywhere) {
            asked.answer(quoted_for_shell(each.path), "first");
        }
    }
    return std::move(asked).end();
}

}  // namespace

std::string for_bash(const config::program_shape& program) {
    std::string out =
        "# bash completion for PROGRAM, made from the tables that it reads its words by.\n";
    for (const std::string& part : {commands(program), flags(program), values(program),
                                    operands(program), where_options_end(program)}) {
        out += '\n';
        out += part;
    }
    out += program.dashes == "-" ? complete_flag_one_dash : complete_flag_two_dashes;
    out += walk;
    return replaced(std::move(out), "PROGRAM", program.name);
}

}  // namespace monolock::completion
