#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace monolock::telemetry {

// The diagnostic log as data and as text. Nothing here writes anywhere or reads a clock: the shell
// takes the time, formats into a buffer it keeps, and hands the line to its sink.

enum class log_level : std::uint8_t { debug, info, warn, error };
enum class log_format : std::uint8_t { text, json };

[[nodiscard]] std::string_view to_string(log_level level) noexcept;
[[nodiscard]] std::string_view to_string(log_format format) noexcept;
// Exactly the words of to_string.
[[nodiscard]] std::optional<log_level> parse_log_level(std::string_view word) noexcept;
[[nodiscard]] std::optional<log_format> parse_log_format(std::string_view word) noexcept;

using log_value = std::variant<std::string_view, std::int64_t, std::uint64_t>;

// The key is a word of ours (a-z, 0-9, _), never text from outside, and none of time, level and
// msg.
struct log_field {
    std::string_view key;
    log_value value;
};

// Views only: whoever makes a record keeps the texts alive until it has been formatted.
struct log_record {
    log_level level = log_level::info;
    std::string_view message;
    std::span<const log_field> fields;
};

using wall_time = std::chrono::system_clock::time_point;

// UTC, RFC 3339 with milliseconds, rounded down: "2026-03-01T09:30:00.250Z". Years 0000 to 9999.
void append_rfc3339(std::string& out, wall_time when);

// Appends one line with its newline. Values are escaped (escape.hpp): a line is a line whatever
// they hold.
//   text  time=2026-03-01T09:30:00.250Z level=info msg="lock granted" lock=nightly token=7
//   json  {"time":"2026-03-01T09:30:00.250Z","level":"info","msg":"lock
//   granted","lock":"nightly","token":7}
void format_text(const log_record& record, wall_time when, std::string& out);
void format_json(const log_record& record, wall_time when, std::string& out);
void format(log_format format, const log_record& record, wall_time when, std::string& out);

}  // namespace monolock::telemetry
