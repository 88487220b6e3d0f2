#pragma once

#include <optional>
#include <string_view>

#include "telemetry/log_record.hpp"

namespace monolock::cli {

// A moment as people type it, in UTC: "2026-03-01", "2026-03-01T09:30", with seconds or with up to
// three decimals of them, with a Z at its end or without. Nothing if it is none. What is left out
// is zero. Pure.
[[nodiscard]] std::optional<telemetry::wall_time> parse_moment(std::string_view text);

}  // namespace monolock::cli
