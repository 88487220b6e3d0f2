#pragma once

#include <sys/types.h>

#include "cli/arguments.hpp"
#include "cli/deadline_page.hpp"
#include "cli/link.hpp"
#include "cli/signal_state.hpp"
#include "cli/terminal.hpp"

namespace monolock::cli {

// What the two processes of a run share. It is made before the fork and outlives both.
struct run_context {
    const run_options& options;
    const signal_state& signals;
    const terminal& screen;
    deadline_page& page;
    char* const* environment;
    pid_t wrapper;
};

// The process between wrapper and command. It makes the claim and keeps it alive, starts the
// command and is its parent, and ends the job when the lock is lost, or when the wrapper is gone.
// The lock is released only when nothing of the job is left that should not be.
//
// It takes orders from the wrapper alone: all signals are blocked, and it is a process group of its
// own, so that what a terminal or a shell sends to the wrapper's group does not reach it.
//
// Returns the exit status of the run, after it was sent to the wrapper.
[[nodiscard]] int run_guardian(const run_context& context, const link& line) noexcept;

}  // namespace monolock::cli
