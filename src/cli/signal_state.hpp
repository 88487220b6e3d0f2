#pragma once

#include <csignal>
#include <vector>

namespace monolock::cli {

// How signals stood when the program was started, so that the command can start with the same: what
// was ignored stays ignored, what was blocked stays blocked.
class signal_state {
public:
    // Before any other function of this file.
    [[nodiscard]] static signal_state capture() noexcept;

    // The signals that the wrapper passes on to the command: those that a person or a supervisor
    // sends to say something, without the ones that were ignored at the start.
    [[nodiscard]] const std::vector<int>& forwarded() const noexcept { return forwarded_; }

    // Whether both were ignored that the keyboard sends to end a program: so a shell without job
    // control starts what it does not wait for ("&").
    [[nodiscard]] bool ignored_keyboard() const noexcept;

    // In the command's process, just before it is executed; async-signal-safe. A signal that came
    // in between and is pending takes effect here.
    void restore() const noexcept;

private:
    sigset_t mask_{};
    bool child_ignored_ = false;
    std::vector<int> forwarded_;
};

// Blocks the signals that the wrapper reads from a descriptor or must not be disturbed by, for the
// calling thread, and makes SIGCHLD be delivered (an ignored one would reap children by itself).
void block_for_wrapper(const signal_state& start) noexcept;

// Blocks every signal: the guardian takes orders from the wrapper alone. Threads that it starts
// inherit this.
void block_for_guardian() noexcept;

// A descriptor from which the given blocked signals are read, non-blocking and close-on-exec.
// Throws std::system_error.
[[nodiscard]] int open_signal_descriptor(const std::vector<int>& signals);

}  // namespace monolock::cli
