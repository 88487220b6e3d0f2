#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "cli/arguments.hpp"
#include "config/options.hpp"

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

// Whether a client can connect to an address: what is wrong with it, or nothing.
[[nodiscard]] std::optional<config::diagnostic> check_reachable(std::string_view address);

}  // namespace monolock::cli
