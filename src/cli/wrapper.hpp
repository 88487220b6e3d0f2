#pragma once

#include "cli/arguments.hpp"

namespace monolock::cli {

// Runs the command under the lock and returns the exit status of the program. The calling process
// becomes the wrapper: the one that the user started, stops and sends signals to. It has one
// thread, forks the guardian before there could be another, and does three things only:
//
//   1. It passes signals on to the command, and ends a wait in the queue with 128+N.
//   2. It minds the terminal: hands it to the command if it has it, takes it back, and stops and
//      continues along with the command, as a shell expects of a job. (The guardian never stops, so
//      a stopped command keeps its lock.)
//   3. It is the second line of defence. It holds a duplicate of the claim's descriptor, so that a
//      guardian that dies does not release the lock before the wrapper has killed the job; and if
//      the guardian does not act on the deadline, it does.
[[nodiscard]] int run_wrapper(const run_options& options, char* const* environment);

}  // namespace monolock::cli
