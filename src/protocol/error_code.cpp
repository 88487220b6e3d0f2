#include "protocol/error_code.hpp"

namespace monolock::protocol {

std::string_view canonical_reason(error_code code) noexcept {
    switch (code) {
        case error_code::server_shutting_down:
            return "server shutting down";
        case error_code::closed_by_administrator:
            return "closed by administrator";
        case error_code::unsupported_version:
            return "unsupported protocol version";
        case error_code::first_message_not_acquire:
            return "first message must be ACQUIRE";
        case error_code::duplicate_acquire:
            return "duplicate ACQUIRE";
        case error_code::unknown_message_type:
            return "unknown message type";
        case error_code::empty_lock_name:
            return "empty lock name";
        case error_code::lock_name_too_long:
            return "lock name too long";
        case error_code::lock_name_not_utf8:
            return "lock name is not valid UTF-8";
        case error_code::lease_not_positive:
            return "lease must be positive";
        case error_code::not_authorized:
            return "not authorized for lock";
    }
    return "unknown error";
}

}  // namespace monolock::protocol
