#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/signal_state.hpp"
#include "cli/terminal.hpp"

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

    struct outcome {
        pid_t process = -1;    // also its process group
        int error_number = 0;  // not 0: nothing runs
        bool executing =
            false;  // whether the error came from executing, or from the fork before it
    };

    // Forks and executes: in a process group of its own, which gets the terminal if asked; to be
    // killed by the kernel when the calling thread ends; signals as they stood at the start.
    // Returns when the program has taken over or could not.
    [[nodiscard]] outcome start(const signal_state& signals, const terminal& screen,
                                bool hand_terminal_over);

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
