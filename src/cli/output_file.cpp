#include "cli/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "posix/descriptor.hpp"
#include "posix/whole_io.hpp"

namespace monolock::cli {

namespace {

constexpr mode_t new_file_mode = 0666;

[[noreturn]] void fail(const std::string& path, int error_number) {
    throw std::system_error{error_number, std::generic_category(), path};
}

void write_all(int fd, std::string_view text, const std::string& path) {
    if (!posix::write_all(fd, text)) {
        fail(path, errno);
    }
}

mode_t mode_of_new_files() noexcept {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return new_file_mode & ~mask;
}

// The file beside the one that is to be, and takes its place or goes.
class beside {
public:
    explicit beside(const std::string& path) : path_{path}, name_{path + ".XXXXXX"} {
        fd_ = posix::descriptor{::mkostemp(name_.data(), O_CLOEXEC)};
        if (!fd_) {
            fail(path_, errno);
        }
    }
    ~beside() {
        if (!in_place_) {
            ::unlink(name_.c_str());
        }
    }
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;

    void write(std::string_view text, mode_t mode) {
        write_all(fd_.get(), text, path_);
        if (::fchmod(fd_.get(), mode) != 0 || ::fsync(fd_.get()) != 0) {
            fail(path_, errno);
        }
    }
    void put_in_place() {
        if (::rename(name_.c_str(), path_.c_str()) != 0) {
            fail(path_, errno);
        }
        in_place_ = true;
    }

private:
    std::string path_;
    std::string name_;
    posix::descriptor fd_;
    bool in_place_ = false;
};

}  // namespace

void write_whole_file(const std::string& path, std::string_view text) {
    struct stat there {};
    const bool exists = ::stat(path.c_str(), &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) {
        const posix::descriptor fd{::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)};
        if (!fd) {
            fail(path, errno);
        }
        write_all(fd.get(), text, path);
        return;
    }
    beside next{path};
    next.write(text, exists ? there.st_mode & 07777U : mode_of_new_files());
    next.put_in_place();
}

bool is_same_file(const std::string& left, const std::string& right) {
    struct stat one {};
    struct stat other {};
    return ::stat(left.c_str(), &one) == 0 && ::stat(right.c_str(), &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace monolock::cli
