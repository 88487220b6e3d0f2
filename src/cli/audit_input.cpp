#include "cli/audit_input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "posix/whole_io.hpp"

namespace monolock::cli {

namespace {

constexpr std::size_t block_bytes = std::size_t{256} << 10U;

}  // namespace

audit_input::audit_input(std::string path) : path_{std::move(path)}, block_(block_bytes) {
    if (path_ != "-") {
        owned_ = posix::descriptor{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
        if (!owned_) {
            fail();
        }
        fd_ = owned_.get();
        struct stat about {};
        if (::fstat(fd_, &about) == 0 && S_ISDIR(about.st_mode)) {
            errno = EISDIR;
            fail();
        }
    }
}

std::string_view audit_input::read() {
    const ssize_t count = posix::read_some(fd_, block_.data(), block_.size());
    if (count < 0) {
        fail();
    }
    return {block_.data(), static_cast<std::size_t>(count)};
}

bool audit_input::is_regular() const {
    struct stat about {};
    return ::fstat(fd_, &about) == 0 && S_ISREG(about.st_mode);
}

bool audit_input::is_in_place() const {
    struct stat ours {};
    struct stat named {};
    return ::fstat(fd_, &ours) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

bool audit_input::is_begun() const {
    struct stat about {};
    return ::fstat(fd_, &about) == 0 && (!S_ISREG(about.st_mode) || about.st_size > 0);
}

bool audit_input::goes_back(std::size_t unfinished) {
    struct stat about {};
    const off_t here = ::lseek(fd_, 0, SEEK_CUR);
    if (::fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size >= here) {
        return false;
    }
    const off_t line = here - static_cast<off_t>(unfinished);
    return ::lseek(fd_, about.st_size >= line ? line : 0, SEEK_SET) >= 0;
}

// Backwards, block by block, to the newline that stands before the lines. The first one that is
// found ends the last line, unless that is unfinished.
void audit_input::seek_lines_before_end(std::size_t lines, unfinished_line last) {
    const off_t end = std::max<off_t>(::lseek(fd_, 0, SEEK_END), 0);
    if (lines == 0 && last == unfinished_line::counts) {
        return;
    }
    std::size_t found = 0;
    for (off_t at = end; at > 0;) {
        const auto size = std::min<off_t>(at, static_cast<off_t>(block_.size()));
        at -= size;
        const ssize_t count = ::pread(fd_, block_.data(), static_cast<std::size_t>(size), at);
        if (count < 0) {
            fail();
        }
        for (off_t back = count; back > 0; --back) {
            const bool newline = block_[static_cast<std::size_t>(back - 1)] == '\n';
            if (at + back == end && !newline && last == unfinished_line::counts) {
                ++found;  // as if it had its newline
            }
            if (newline && found++ == lines) {
                ::lseek(fd_, at + back, SEEK_SET);
                return;
            }
        }
    }
    ::lseek(fd_, 0, SEEK_SET);
}

void audit_input::fail() const {
    throw std::system_error{errno, std::generic_category(), path_};
}

}  // namespace monolock::cli
