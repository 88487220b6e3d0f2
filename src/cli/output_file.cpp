#include "cli/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "posix/descriptor.hpp"
#include "posix/whole_io.hpp"

namespace monolock::cli {

namespace {

namespace fs = std::filesystem;

constexpr mode_t new_file_mode = 0666;
constexpr int links_max = 40;  // as the kernel has it

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
            fail(path_ + ": no file can be made beside it", errno);
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
            fail(path_ + ": cannot be replaced", errno);
        }
        in_place_ = true;
    }

private:
    std::string path_;
    std::string name_;
    posix::descriptor fd_;
    bool in_place_ = false;
};

// What a path leads to: a descriptor of this process, as /dev/stdout does, or the path of something
// that is no link, and need not be there.
struct destination {
    std::string path;
    std::optional<int> descriptor;
};

destination destination_of(const std::string& path) {
    const auto folder_of = [](const fs::path& file) {
        return fs::canonical(file.has_parent_path() ? file.parent_path() : ".");
    };
    std::error_code no_proc;
    const fs::path descriptors = fs::canonical("/proc/self/fd", no_proc);
    fs::path file = path;
    for (int links = 0; fs::is_symlink(fs::symlink_status(file)); ++links) {
        const fs::path folder = folder_of(file);
        if (folder == descriptors) {
            return {.path = path, .descriptor = std::stoi(file.filename())};
        }
        if (links == links_max) {
            fail(path, ELOOP);
        }
        file = folder / fs::read_symlink(file);
    }
    return {.path = file, .descriptor = std::nullopt};
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view text) {
    struct stat there {};
    const bool exists = ::stat(path.c_str(), &there) == 0;
    if (!exists && errno != ENOENT) {
        fail(path, errno);
    }
    const destination to = destination_of(path);
    if (to.descriptor) {
        return write_all(*to.descriptor, text, path);
    }
    // The descriptors of other processes lead to files that may have no name any more.
    if (exists && (!S_ISREG(there.st_mode) || !is_same_file(path, to.path))) {
        const posix::descriptor fd{::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY)};
        if (!fd) {
            fail(path, errno);
        }
        write_all(fd.get(), text, path);
        return;
    }
    beside next{to.path};
    next.write(text, exists ? there.st_mode & 07777U : mode_of_new_files());
    next.put_in_place();
}

bool is_same_file(const std::string& read, const std::string& written) {
    const auto look = [](const std::string& path, int standard, struct stat& about) {
        return path == "-" ? ::fstat(standard, &about) == 0 : ::stat(path.c_str(), &about) == 0;
    };
    struct stat one {};
    struct stat other {};
    return look(read, STDIN_FILENO, one) && look(written, STDOUT_FILENO, other) &&
           S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace monolock::cli
