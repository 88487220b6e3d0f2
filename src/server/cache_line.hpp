#pragma once

#include <cstddef>

namespace monolock::server {

// What one thread writes again and again lies at least so far from what others read or write: cores
// hand lines of memory to each other as a whole. Not the standard library's constant, which g++
// does not want in headers because it depends on compiler flags.
inline constexpr std::size_t cache_line_bytes = 64;

}  // namespace monolock::server
