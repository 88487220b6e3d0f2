#pragma once

#include <cstddef>
#include <string>

#include "config/parsed.hpp"

namespace monolock::posix {

// The whole of a regular file of at most `size_max` bytes. Anything else, a pipe or a device that
// could make the caller wait among them, is refused; the diagnostic says why and does not repeat
// the path.
[[nodiscard]] config::parsed<std::string> read_file(const std::string& path, std::size_t size_max);

}  // namespace monolock::posix
