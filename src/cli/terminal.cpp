#include "cli/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace monolock::cli {

terminal::terminal() noexcept : fd_{open("/dev/tty", O_RDWR | O_CLOEXEC)} {}

bool terminal::is_ours() const noexcept {
    return fd_ && tcgetpgrp(fd_.get()) == getpgrp();
}

bool terminal::belongs_to(pid_t group) const noexcept {
    if (!fd_) {
        return false;
    }
    const pid_t foreground = tcgetpgrp(fd_.get());
    return foreground == group || (foreground > 0 && kill(-foreground, 0) != 0 && errno == ESRCH);
}

void terminal::give_to(pid_t group) const noexcept {
    if (fd_) {
        tcsetpgrp(fd_.get(), group);
    }
}

}  // namespace monolock::cli
