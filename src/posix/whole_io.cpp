#include "posix/whole_io.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace monolock::posix {

namespace {

// Whether the call that failed is to be made again, which it then can be.
bool is_to_be_tried_again(int fd, short events) noexcept {
    if (errno == EAGAIN) {
        pollfd ready{.fd = fd, .events = events, .revents = 0};
        return ::poll(&ready, 1, -1) > 0 || errno == EINTR;
    }
    return errno == EINTR;
}

}  // namespace

ssize_t read_some(int fd, char* into, std::size_t size) noexcept {
    ssize_t count = -1;
    do {
        count = ::read(fd, into, size);
    } while (count < 0 && is_to_be_tried_again(fd, POLLIN));
    return count;
}

bool write_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && !is_to_be_tried_again(fd, POLLOUT)) {
            return false;
        }
        text.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace monolock::posix
