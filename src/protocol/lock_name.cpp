#include "protocol/lock_name.hpp"

#include "protocol/utf8.hpp"

namespace monolock::protocol {

std::optional<error_code> check_lock_name(std::string_view name) noexcept {
    if (name.empty()) {
        return error_code::empty_lock_name;
    }
    if (name.size() > lock_name_bytes_max) {
        return error_code::lock_name_too_long;
    }
    if (!is_valid_utf8(name)) {
        return error_code::lock_name_not_utf8;
    }
    return std::nullopt;
}

}  // namespace monolock::protocol
