#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "protocol/error_code.hpp"

namespace monolock::protocol {

// A lock name is 1 to 255 bytes of valid UTF-8, compared byte for byte: nothing is trimmed, folded
// or normalised, and control characters are legal (docs/protocol.md).
inline constexpr std::size_t lock_name_bytes_max = 255;

// The code that refuses the name, or nothing if it is a lock name.
[[nodiscard]] std::optional<error_code> check_lock_name(std::string_view name) noexcept;

}  // namespace monolock::protocol
