#pragma once

#include <sys/types.h>

#include "posix/descriptor.hpp"

namespace monolock::cli {

// The controlling terminal, if there is one. SIGTTOU must be blocked by whoever calls give_to.
class terminal {
public:
    terminal() noexcept;

    [[nodiscard]] bool present() const noexcept { return static_cast<bool>(fd_); }
    // Whether the caller's process group is the one that the terminal talks to.
    [[nodiscard]] bool is_ours() const noexcept;
    // Whether it talks to that group, or to one that is no more.
    [[nodiscard]] bool belongs_to(pid_t group) const noexcept;
    // Async-signal-safe. Fails quietly: a terminal that hung up has nobody to complain.
    void give_to(pid_t group) const noexcept;

private:
    posix::descriptor fd_;
};

}  // namespace monolock::cli
