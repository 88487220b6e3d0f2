#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "config/options.hpp"
#include "config/program_shape.hpp"

namespace monolock::cli {

// What the operator's commands were told. Checked: names are lock names, and `admin` is an address
// that a client can connect to.

struct locks_options {
    std::string admin;
    bool json = false;
    bool watch = false;
    std::optional<std::string> match;  // a glob
};

struct show_options {
    std::string admin;
    bool json = false;
    std::string name;
};

struct release_options {
    std::string admin;
    bool json = false;
    bool yes = false;                    // do not ask
    std::optional<std::uint64_t> token;  // of the owner that is meant
    std::string name;
};

struct kick_options {
    std::string admin;
    bool json = false;
    bool yes = false;
    std::string name;
    std::string who;  // the waiter's address, or its id
};

struct info_options {
    std::string admin;
    bool json = false;
};

using admin_arguments = std::variant<locks_options, show_options, release_options, kick_options,
                                     info_options, help, config::diagnostic>;

// Whether the word is one of these commands.
[[nodiscard]] bool is_admin_command(std::string_view verb) noexcept;

// The words from the command on, which is_admin_command, and the environment.
[[nodiscard]] admin_arguments parse_admin_arguments(std::span<const char* const> words,
                                                    const config::environment& variables);

[[nodiscard]] help admin_help();

// The command lines of all of them as data.
[[nodiscard]] std::vector<config::command_shape> admin_shapes();

// Whether a client can connect to an address: what is wrong with it, or nothing.
[[nodiscard]] std::optional<config::diagnostic> check_reachable(std::string_view address);

// --- setters of rows of options, for all commands that have such a member

// That the flag is there.
template <class Options, bool Options::*Member>
std::optional<config::diagnostic> set_flag(Options& into, std::string_view /*value*/) {
    into.*Member = true;
    return std::nullopt;
}

// An address that a client can connect to.
template <class Options, std::string Options::*Member>
std::optional<config::diagnostic> set_reachable(Options& into, std::string_view text) {
    if (auto wrong = check_reachable(text)) {
        return wrong;
    }
    into.*Member = text;
    return std::nullopt;
}

}  // namespace monolock::cli
