#include "server/audit_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>
#include <thread>
#include <utility>

namespace monolock::server {

namespace {

constexpr std::string_view standard_output = "-";
constexpr mode_t file_mode = 0640;
constexpr std::size_t regular_write_bytes_max = std::size_t{64} << 10U;

config::diagnostic last_error() {
    return {std::generic_category().message(errno)};
}

bool is_writable_descriptor(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

// Read and write: the end of a file can be looked at, and a FIFO needs no reader to be opened.
// Where only writing is permitted that will do. Never blocks, and never becomes a terminal of ours.
posix::descriptor open_to_append(const std::string& path, int more_flags) noexcept {
    const int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | more_flags;
    posix::descriptor file{::open(path.c_str(), flags | O_RDWR, file_mode)};
    if (!file && errno == EACCES) {
        file = posix::descriptor{::open(path.c_str(), flags | O_WRONLY, file_mode)};
    }
    return file;
}

}  // namespace

config::parsed<std::unique_ptr<audit_file>> audit_file::open(const std::string& path) {
    if (path == standard_output) {
        if (!is_writable_descriptor(STDOUT_FILENO)) {
            return config::diagnostic{"standard output is closed"};
        }
        return std::unique_ptr<audit_file>{new audit_file{{}, STDOUT_FILENO}};
    }
    posix::descriptor file = open_to_append(path, O_CREAT);
    if (!file) {
        return last_error();
    }
    const int fd = file.get();
    return std::unique_ptr<audit_file>{new audit_file{std::move(file), fd}};
}

std::optional<config::diagnostic> audit_file::check(const std::string& path) {
    if (path == standard_output || open_to_append(path, 0)) {
        return std::nullopt;
    }
    if (errno != ENOENT) {
        return last_error();
    }
    const auto name = path.rfind('/');
    const std::string folder = name == std::string::npos ? "." : path.substr(0, name + 1);
    if (::access(folder.c_str(), W_OK | X_OK) == 0) {
        return std::nullopt;
    }
    return last_error();
}

audit_file::audit_file(posix::descriptor owned, int fd) : owned_{std::move(owned)}, fd_{fd} {
    struct stat about {};
    regular_ = ::fstat(fd_, &about) == 0 && S_ISREG(about.st_mode);
}

bool audit_file::ends_within_line() const noexcept {
    struct stat about {};
    char last = '\n';
    return regular_ && ::fstat(fd_, &about) == 0 && about.st_size > 0 &&
           ::pread(fd_, &last, 1, about.st_size - 1) == 1 && last != '\n';
}

audit_sink::outcome audit_file::write(std::string_view text) noexcept {
    // Standard output is shared with others, so it cannot be made non-blocking; it is asked first.
    if (!owned_ && !regular_) {
        pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
        if (::poll(&ready, 1, 0) == 0) {
            return {.written = 0, .error = EAGAIN};
        }
    }
    ssize_t written = -1;
    do {
        written = ::write(fd_, text.data(), text.size());
    } while (written < 0 && errno == EINTR);
    if (written <= 0) {
        return {.written = 0, .error = written < 0 ? errno : EIO};
    }
    return {.written = static_cast<std::size_t>(written), .error = 0};
}

std::size_t audit_file::write_bytes_max() const noexcept {
    return regular_ ? regular_write_bytes_max : PIPE_BUF;
}

// Only what this very descriptor wrote last, and only while nobody else has appended to the file.
bool audit_file::take_back(std::size_t count) noexcept {
    if (!regular_ || !owned_) {
        return false;
    }
    struct stat about {};
    const off_t end = ::lseek(fd_, 0, SEEK_CUR);
    return end >= static_cast<off_t>(count) && ::fstat(fd_, &about) == 0 && about.st_size == end &&
           ::ftruncate(fd_, end - static_cast<off_t>(count)) == 0;
}

void audit_file::wait(std::chrono::milliseconds time_max) noexcept {
    if (regular_) {
        std::this_thread::sleep_for(time_max);
        return;
    }
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(time_max.count())) != 0 &&
        (ready.revents & POLLOUT) == 0) {
        std::this_thread::sleep_for(time_max);  // broken, and poll would say so at once for ever
    }
}

}  // namespace monolock::server
