#pragma once

#include <string>
#include <string_view>

#include "server/admin/lock_view.hpp"
#include "server/admin/ownership_history.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::server::admin {

// The admin API's objects as JSON (docs/openapi.yaml). Tokens and ids are integers; times are RFC
// 3339, made of the wall clock now and the monotonic age; ages are never negative.

// One moment, on both clocks.
struct moment {
    core::time_point steady;
    telemetry::wall_time wall;

    [[nodiscard]] static moment now() noexcept;
};

void append_holder(std::string& out, const claim_view& who, core::time_point taken_at,
                   const moment& now);
void append_waiter(std::string& out, const claim_view& who, core::time_point taken_at,
                   const moment& now);
void append_lock(std::string& out, const lock_view& lock, const moment& now);
void append_change(std::string& out, const ownership_change& change, const moment& now);

// `"key":"2026-03-01T09:30:00.000Z"`
void append_time(std::string& out, std::string_view key, core::time_point when, const moment& now);

// `"key":"value"`
void append_text(std::string& out, std::string_view key, std::string_view value);
// `"key":value`
void append_number(std::string& out, std::string_view key, std::uint64_t value);

// `"key":true`
void append_flag(std::string& out, std::string_view key, bool value);

// {"error":"…"}
[[nodiscard]] std::string error_body(std::string_view why);

}  // namespace monolock::server::admin
