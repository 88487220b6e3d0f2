#pragma once

#include <span>

#include "cli/arguments.hpp"
#include "config/access_rules.hpp"
#include "config/parsed.hpp"
#include "config/program_shape.hpp"

namespace monolock::cli {

// `monolockctl check-acl`: what a server would make of a file of access rules. Asks no server.

// The words behind the verb; options may stand before and behind the file.
[[nodiscard]] arguments parse_check_acl(std::span<const char* const> words);
[[nodiscard]] help check_acl_help();
// The same command line as data.
[[nodiscard]] config::command_shape check_acl_shape();

// What is to be said: `text` on standard output, or all that is wrong with the file, each on a line
// of its own, on standard error.
struct check_acl_answer {
    std::string text;
    config::diagnostics wrong;
    int status = 0;
};
[[nodiscard]] check_acl_answer answer(const check_acl_options& told,
                                      const config::checked<config::access_rules>& rules);

// Reads the file and says it. Returns the exit status.
[[nodiscard]] int run_check_acl(const check_acl_options& told);

}  // namespace monolock::cli
