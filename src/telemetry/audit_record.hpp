#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/fencing_token.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::telemetry {

// The audit log's records as data, and their lines (docs/audit.md). Nothing here writes anywhere or
// reads a clock.

// The session became the owner of the lock, so long after its ACQUIRE.
struct audit_granted {
    protocol::fencing_token token;
    std::chrono::milliseconds wait{0};
    friend bool operator==(const audit_granted&, const audit_granted&) = default;
};

// Its ownership ended after so long. The reason is a word of core::to_string(end_reason).
struct audit_released {
    protocol::fencing_token token;
    std::chrono::milliseconds held{0};
    std::string_view reason;
    friend bool operator==(const audit_released&, const audit_released&) = default;
};

// The ACL refused it.
struct audit_denied {
    friend bool operator==(const audit_denied&, const audit_denied&) = default;
};

// An operator ended the owner's session; its audit_released follows.
struct audit_force_release {
    protocol::fencing_token token;
    friend bool operator==(const audit_force_release&, const audit_force_release&) = default;
};

// An operator ended a waiter's session.
struct audit_kick_waiter {
    friend bool operator==(const audit_kick_waiter&, const audit_kick_waiter&) = default;
};

using audit_event = std::variant<audit_granted, audit_released, audit_denied, audit_force_release,
                                 audit_kick_waiter>;

// Views only: whoever makes a record keeps the texts alive.
struct audit_record {
    wall_time time;
    std::string_view lock;
    std::string_view identity;     // empty without mTLS
    std::string_view remote_addr;  // of the session concerned
    audit_event event;
    friend bool operator==(const audit_record&, const audit_record&) = default;
};

// Stands where that many records were lost.
struct audit_gap {
    wall_time time;
    std::uint64_t lost = 0;
    friend bool operator==(const audit_gap&, const audit_gap&) = default;
};

// The word of the field `event`.
[[nodiscard]] std::string_view name_of(const audit_event& event) noexcept;
inline constexpr std::string_view audit_gap_name = "audit_gap";

// Appends one line of JSON with its newline, keys in the documented order, no spaces. Names come
// back unchanged from a JSON parser and cannot break the line (escape.hpp).
void append_audit_line(std::string& out, const audit_record& record);
void append_audit_line(std::string& out, const audit_gap& gap);

}  // namespace monolock::telemetry
