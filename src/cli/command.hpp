#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/signal_state.hpp"
#include "cli/terminal.hpp"
#include "posix/descriptor.hpp"

namespace monolock::cli {

// A command made ready to be executed without a shell: everything that needs memory is done before
// the fork, because the process that forks has threads.
class command {
public:
    // words is not empty. The environment is the caller's with the additions ("KEY=value") put in
    // place of variables of the same name. A program without a slash is looked for along the PATH
    // of that environment, as a shell would.
    command(std::vector<std::string> words, char* const* environment,
            const std::vector<std::string>& additions);
    // The pointers into its own texts are what execve takes, so it stays where it is.
    command(const command&) = delete;
    command& operator=(const command&) = delete;
    ~command() = default;

    struct start_result {
        pid_t process = -1;          // also its process group
        posix::descriptor report{};  // readable once the program has taken over or could not
        int error_number = 0;        // not 0: there is no process
    };

    // Forks, and has the child execute: in a process group of its own, which gets the terminal if
    // asked; to be killed by the kernel when the calling thread ends; signals as they stood at the
    // start. Does not wait for the program to take over, which may take for ever (its file may lie
    // on a network that hangs): the process can be signalled and killed meanwhile.
    [[nodiscard]] start_result start(const signal_state& signals, const terminal& screen,
                                     bool hand_terminal_over);

    // Why the program could not be executed, from errno; its process is about to end then. 0 if it
    // has taken over, if the process ended before, or if nothing is known yet. Never waits.
    [[nodiscard]] static int failure_in(const posix::descriptor& report) noexcept;

private:
    [[nodiscard]] int execute() const noexcept;
    [[noreturn]] void become(pid_t parent, const signal_state& signals, const terminal& screen,
                             bool hand_terminal_over, int report) const noexcept;

    std::vector<std::string> words_;
    std::vector<std::string> environment_;
    std::vector<std::string> candidates_;  // paths to try, in order
    std::vector<char*> argv_;
    std::vector<char*> envp_;
};

}  // namespace monolock::cli
