#pragma once

#include <cstdint>
#include <string_view>

namespace monolock::protocol {

// The code of an ERROR frame. A peer may send codes that have no name here; they are valid values
// of the type and follow their range. Numbers and reasons are permanent.
enum class error_code : std::uint8_t {
    server_shutting_down = 0x01,
    closed_by_administrator = 0x02,
    unsupported_version = 0x10,
    first_message_not_acquire = 0x11,
    duplicate_acquire = 0x12,
    unknown_message_type = 0x13,
    empty_lock_name = 0x14,
    lock_name_too_long = 0x15,
    lock_name_not_utf8 = 0x16,
    lease_not_positive = 0x17,
    not_authorized = 0x18,
};

// Codes below this one are conditions of the server: a new connection may succeed. From it up the
// client is at fault, and the same bytes would fail again.
inline constexpr std::uint8_t client_error_min = 0x10;

[[nodiscard]] constexpr bool is_temporary(error_code code) noexcept {
    return static_cast<std::uint8_t>(code) < client_error_min;
}

// The reason that the server sends with the code; "unknown error" for a code without a name.
[[nodiscard]] std::string_view canonical_reason(error_code code) noexcept;

}  // namespace monolock::protocol
