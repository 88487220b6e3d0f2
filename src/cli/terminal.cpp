#include "cli/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace monolock::cli {

terminal::terminal() noexcept : fd_{open("/dev/tty", O_RDWR | O_CLOEXEC)} {}

bool terminal::is_ours() const noexcept {
    return fd_ && tcgetpgrp(fd_.get()) == getpgrp();
}

void terminal::give_to(pid_t group) const noexcept {
    if (fd_) {
        tcsetpgrp(fd_.get(), group);
    }
}

}  // namespace monolock::cli
