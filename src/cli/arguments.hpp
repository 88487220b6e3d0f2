#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <monolock/client.hpp>

#include "config/options.hpp"
#include "config/parsed.hpp"
#include "config/program_shape.hpp"

namespace monolock::cli {

using std::chrono::nanoseconds;

// What `monolockctl run` was told. Checked: the name is a lock name, the address one or several
// that a client can connect to, TLS knows which name to expect there, the grace fits the lease, the
// command has at least one word.
struct run_options {
    std::chrono::milliseconds lease{10'000};
    std::optional<nanoseconds> wait;  // absent: no limit; zero: one try
    bool retry = false;
    std::optional<nanoseconds> grace;  // always set once parsed
    int conflict_exit_code = 75;
    std::string server = ":7070";      // this machine; or a list
    bool coordinated = false;          // the servers of a list are known to be one lock space
    std::optional<tls_options> tls;    // absent: plain. Any of its flags turns TLS on
    std::optional<std::string> admin;  // where to ask who has the lock, when a wait ran out
    std::string name;
    std::vector<std::string> command;
};

// What `monolockctl check-acl` was told.
struct check_acl_options {
    std::string file;
    // Whether this identity may claim this lock; absent if only the file is to be checked.
    struct question {
        std::string identity;  // one that a client can have
        std::string lock;      // a lock name
    };
    std::optional<question> asked;
};

// Whether `server` is more than one address.
[[nodiscard]] bool has_server_list(const run_options& told) noexcept;

// The time between TERM and KILL if nobody chose one: 0.15 of the lease, at most 5 s.
[[nodiscard]] nanoseconds default_grace(std::chrono::milliseconds lease) noexcept;
// 0.3 of the lease. A grace must stay below: TERM goes out a grace before the last confirmed
// moment, and it must not go out while heartbeats are answered, however late they may be.
[[nodiscard]] nanoseconds grace_bound(std::chrono::milliseconds lease) noexcept;

// Text for standard output, to be followed by exit 0.
struct help {
    std::string text;
};

// A diagnostic is one line for standard error, to be followed by exit 2.
using arguments = std::variant<run_options, check_acl_options, help, config::diagnostic>;

// The words after the program's name, and the environment.
[[nodiscard]] arguments parse_arguments(std::span<const char* const> words,
                                        const config::environment& variables);

// The command line of `run` as data.
[[nodiscard]] config::command_shape run_shape();

}  // namespace monolock::cli
