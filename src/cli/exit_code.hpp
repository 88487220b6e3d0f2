#pragma once

#include <system_error>

namespace monolock::cli {

// The failures of monolockctl itself; everything else is the command's own status. Numbers are
// permanent, and as sysexits.h has them where it has one that fits. None is 0.
enum class exit_code : int {
    invalid_file = 1,  // check-acl: no valid access rules; audit verify: a broken log
    not_there = 1,     // show, release, kick: no such lock, or no such waiter
    unhealthy = 1,     // health: the server says so
    usage = 2,
    declined = 3,         // release, kick: asked, and the answer was not yes
    no_input = 66,        // a file that was named cannot be read
    unreachable = 69,     // not reached, or dropped before the lock was granted
    refused = 70,         // refused for good, or no monolock server, or none to trust
    system_failure = 71,  // no process, no thread, no memory
    output_failed = 74,   // help that could not be written
    not_acquired = 75,    // not in time; --conflict-exit-code changes it
    conflict = 75,        // release: another owner than the one meant; kick: more than one waiter
    lock_lost = 76,       // lost while the command ran, or closed by an administrator while queued
    not_authorized = 77,  // for the lock, or at all: the client certificate was refused
    misconfigured = 78,   // a file of TLS
    not_executable = 126,
    not_found = 127,
};

[[nodiscard]] constexpr int to_int(exit_code code) noexcept {
    return static_cast<int>(code);
}

// How a shell reports the signal that ended a process.
[[nodiscard]] constexpr int of_signal(int number) noexcept {
    return 128 + number;
}

// The status of a command that ended, from waitpid.
[[nodiscard]] int of_wait_status(int status) noexcept;

// A claim that ended before its grant, from the client library's code. (That the time ran out and
// that a signal came are the caller's own doing and not seen here.)
[[nodiscard]] exit_code of_failed_acquire(const std::error_code& why) noexcept;

// A command that could not be executed, from errno.
[[nodiscard]] exit_code of_failed_exec(int error_number) noexcept;

}  // namespace monolock::cli
