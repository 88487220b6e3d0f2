#pragma once

#include <span>
#include <string>
#include <variant>

#include "cli/arguments.hpp"
#include "config/options.hpp"
#include "config/program_shape.hpp"

namespace monolock::cli {

// `monolockctl health`: what a server says of itself at its -ops-listen, as an exit status, for
// whatever restarts it or sends clients to it and cannot speak HTTP (a container's health check).

struct health_options {
    std::string ops;     // an address that a client can connect to
    bool ready = false;  // whether it takes clients, rather than whether it is to be restarted
};

using health_arguments = std::variant<health_options, help, config::diagnostic>;

// The words after `health`, and the environment.
[[nodiscard]] health_arguments parse_health_arguments(std::span<const char* const> words,
                                                      const config::environment& variables);

[[nodiscard]] help health_help();

// The same command line as data.
[[nodiscard]] config::command_shape health_shape();

// Asks once, and answers within five seconds. Returns the exit status.
[[nodiscard]] int run_health(std::span<const char* const> words,
                             const config::environment& variables);

}  // namespace monolock::cli
