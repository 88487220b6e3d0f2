#include "cli/console.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "cli/exit_code.hpp"
#include "posix/whole_io.hpp"

namespace monolock::cli {

bool complain(std::string_view text, std::chrono::milliseconds patience) noexcept {
    std::string line{"monolockctl: "};
    line += text;
    line += '\n';
    // A pipe or terminal that is ready takes PIPE_BUF bytes without blocking.
    for (std::string_view rest{line}; !rest.empty();) {
        pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        if (poll(&ready, 1, static_cast<int>(patience.count())) <= 0) {
            return false;
        }
        const ssize_t written =
            write(STDERR_FILENO, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
        if (written < 0 && errno != EINTR && errno != EAGAIN) {
            return false;
        }
        rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return true;
}

bool print(std::string_view text) noexcept {
    return posix::write_all(STDOUT_FILENO, text);
}

int output_failed() noexcept {
    complain("standard output cannot be written");
    return to_int(exit_code::output_failed);
}

int print_result(std::string_view text, int status) noexcept {
    return print(text) ? status : output_failed();
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
