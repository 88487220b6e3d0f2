#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "config/parsed.hpp"

namespace monolock::config {

// Durations as Go writes them: decimal numbers, each with its unit (ns, us, µs, ms, s, m, h) and
// optionally a fraction, largest first by custom but in any order: "5s", "250ms", "1m30s", "1.5h".
// A sign may stand in front. "0" needs no unit; every other bare number is refused, since seconds
// and milliseconds are both too likely. What is finer than a nanosecond is cut off.
[[nodiscard]] parsed<std::chrono::nanoseconds> parse_duration(std::string_view text);

// As Go writes it; it parses to the same value: "5s", "1h30m", "1.5ms", "0s".
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace monolock::config
