#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/parsed.hpp"

namespace monolock::config {

// Flags and their environment variables, from one table per program. This file knows the command
// line's grammar and precedence, and nothing about what any option means; docs/decisions has why it
// is ours.
//
// Grammar: "-name value", "-name=value", and the same with two dashes. The next word is the value
// whatever it looks like. "--" ends the options; so does the first word that does not begin with a
// dash, or is only one. An empty value on the command line is a value.
// Precedence: command line, then environment, then default. The last of a repeated flag wins, yet
// each is judged; a variable is not judged when a flag overrides it. An empty variable is unset.

// std::getenv has this shape: null for unset.
using environment = std::function<const char*(const char* variable)>;

enum class option_kind {
    value,    // takes one
    toggle,   // takes none
    request,  // takes none, and what follows it is not read: -h, -version
};

// What a value is, for whoever completes a command line.
enum class value_kind {
    text,   // nothing that a shell could know
    file,   // a path
    words,  // one of a few
};

// One row. Texts are literals.
struct option {
    std::string_view name;  // without dashes
    option_kind kind = option_kind::value;
    const char* variable = nullptr;   // null: command line only
    std::string_view default_text{};  // as the help prints it
    std::string_view help{};          // empty: left out of the help
    value_kind takes = value_kind::text;
    std::string_view words{};  // those that a value may be, with blanks between them
};

// A value and where it came from.
struct setting {
    std::size_t option = 0;  // index of the row
    std::string value;       // empty for a toggle or a request
    std::string source;      // "-io-timeout" or "MONOLOCK_IO_TIMEOUT"
};

struct command_line {
    std::vector<setting> settings;  // in order
    std::vector<std::string> rest;  // from the first word that is not an option, "--" dropped
    std::optional<std::size_t> request{};  // index of the row, if one was met
    bool closed = false;                   // "--" ended the options
};

// A flag as this program writes it: a single letter always has one dash.
[[nodiscard]] std::string spelled(std::string_view name, std::string_view dashes);

// The words after the program's name. `dashes` is how this program writes its flags in messages.
[[nodiscard]] parsed<command_line> scan(std::span<const option> options,
                                        std::span<const char* const> words,
                                        std::string_view dashes);

// The same where options may stand between and behind the other words too, for commands that do not
// run another one. After "--" all is words.
[[nodiscard]] parsed<command_line> scan_anywhere(std::span<const option> options,
                                                 std::span<const char* const> words,
                                                 std::string_view dashes);

// The settings that count, in the order in which to apply them: the variables of options that the
// command line does not set, then the command line's.
[[nodiscard]] std::vector<setting> with_environment(std::span<const option> options,
                                                    std::vector<setting> from_words,
                                                    const environment& variables);

// Where the option of that name was set, the flag or the variable: the last setting of it. Empty if
// it was not set.
[[nodiscard]] std::string source_of(std::span<const option> options,
                                    const std::vector<setting>& settings, std::string_view name);

// A word of a command line, or a value, as a diagnostic has it: quoted, and without the user and
// the password of a URL, since diagnostics are kept in logs.
[[nodiscard]] std::string quoted_word(std::string_view word);

// The diagnostic of a value, with its source and the value quoted: `-threads "0": at least 1`.
[[nodiscard]] diagnostic refuse(const setting& which, const diagnostic& why);

// An option and how its value enters the settings of a program: what the setter finds wrong, or
// nothing. No setter for a request.
template <class Settings>
struct option_row {
    option what;
    std::optional<diagnostic> (*set)(Settings&, std::string_view) = nullptr;
};

template <class Settings, std::size_t Count>
[[nodiscard]] constexpr std::array<option, Count> options_of(
    const std::array<option_row<Settings>, Count>& rows) {
    std::array<option, Count> out{};
    for (std::size_t index = 0; index < Count; ++index) {
        out[index] = rows[index].what;
    }
    return out;
}

// Applies what with_environment returned for the rows' options; stops at the first refusal.
template <class Settings, std::size_t Count>
[[nodiscard]] std::optional<diagnostic> apply(const std::array<option_row<Settings>, Count>& rows,
                                              const std::vector<setting>& settings,
                                              Settings& into) {
    for (const setting& each : settings) {
        if (const auto wrong = rows[each.option].set(into, each.value)) {
            return refuse(each, *wrong);
        }
    }
    return std::nullopt;
}

// The table that the help prints, a line per option that has a help text.
[[nodiscard]] std::string format_table(std::span<const option> options, std::string_view dashes);

}  // namespace monolock::config
