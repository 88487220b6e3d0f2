#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace monolock::posix {

// Opens /dev/null in place of standard descriptors that were closed at the start, so that no later
// descriptor gets their number. For reading only: what is written there fails, as it would have.
// Close-on-exec: a program that is started finds them closed as before.
inline void fill_standard_descriptors() noexcept {
    // open takes the lowest free number, so the loop ends with the first that is above the three.
    int fd = 0;
    do {
        fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        ::close(fd);
    }
}

}  // namespace monolock::posix
