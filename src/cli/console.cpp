#include "cli/console.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace monolock::cli {

namespace {

bool write_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace

void complain(std::string_view text) noexcept {
    std::string line{"monolockctl: "};
    line += text;
    line += '\n';
    write_all(STDERR_FILENO, line);
}

bool print(std::string_view text) noexcept {
    return write_all(STDOUT_FILENO, text);
}

void fill_standard_descriptors() noexcept {
    // open takes the lowest free number, so the loop ends with the first that is above the three.
    int fd = 0;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

void let_go_of_standard_input_and_output() noexcept {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        close(fd);
    }
}

}  // namespace monolock::cli
