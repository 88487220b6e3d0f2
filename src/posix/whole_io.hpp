#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace monolock::posix {

// read() and write() on descriptors that were inherited: whoever shares one may have made it
// non-blocking, at any time. These wait all the same, and signals do not disturb them. What goes
// wrong is in errno.

// What there is, and so much at the most; 0 at the end, -1 for an error.
[[nodiscard]] ssize_t read_some(int fd, char* into, std::size_t size) noexcept;

// All of it; false if that could not be.
[[nodiscard]] bool write_all(int fd, std::string_view text) noexcept;

}  // namespace monolock::posix
