#include "posix/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "posix/descriptor.hpp"

namespace monolock::posix {

namespace {

config::diagnostic last_error() {
    return {std::generic_category().message(errno)};
}

}  // namespace

config::parsed<std::string> read_file(const std::string& path, std::size_t size_max) {
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (!file) {
        return last_error();
    }
    struct stat about {};
    if (::fstat(file.get(), &about) != 0) {
        return last_error();
    }
    if (!S_ISREG(about.st_mode)) {
        return config::diagnostic{"not a regular file"};
    }
    // One byte more than is there shows the end; one more than is allowed shows a file that is too
    // long, whatever its size was said to be: it may be growing.
    std::string content(std::min(static_cast<std::size_t>(about.st_size), size_max) + 1, '\0');
    std::size_t size = 0;
    while (size <= size_max) {
        if (size == content.size()) {
            content.resize(std::min(2 * size, size_max + 1));
        }
        const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
        if (count < 0 && errno != EINTR) {
            return last_error();
        }
        if (count == 0) {
            break;
        }
        size += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    if (size > size_max) {
        return config::diagnostic{"longer than " + std::to_string(size_max) + " bytes"};
    }
    content.resize(size);
    return content;
}

}  // namespace monolock::posix
