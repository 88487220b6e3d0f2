#include "telemetry/log_record.hpp"

#include <array>
#include <charconv>

#include "telemetry/escape.hpp"

namespace monolock::telemetry {

namespace {

constexpr std::array<std::string_view, 4> level_words{"debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 2> format_words{"text", "json"};

template <class Enum, std::size_t Size>
std::optional<Enum> find_word(const std::array<std::string_view, Size>& words,
                              std::string_view word) noexcept {
    for (std::size_t index = 0; index < Size; ++index) {
        if (words[index] == word) {
            return static_cast<Enum>(index);
        }
    }
    return std::nullopt;
}

template <class Integer>
void append_number(std::string& out, Integer value) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
}

// Text by the format's own escape; numbers are alike in both.
void append_value(std::string& out, const log_value& value,
                  void (*append_string)(std::string&, std::string_view)) {
    if (const auto* const text = std::get_if<std::string_view>(&value)) {
        append_string(out, *text);
    } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
        append_number(out, *number);
    } else {
        append_number(out, std::get<std::uint64_t>(value));
    }
}

}  // namespace

std::string_view to_string(log_level level) noexcept {
    return level_words[static_cast<std::size_t>(level)];
}

std::string_view to_string(log_format format) noexcept {
    return format_words[static_cast<std::size_t>(format)];
}

std::optional<log_level> parse_log_level(std::string_view word) noexcept {
    return find_word<log_level>(level_words, word);
}

std::optional<log_format> parse_log_format(std::string_view word) noexcept {
    return find_word<log_format>(format_words, word);
}

void append_rfc3339(std::string& out, wall_time when) {
    namespace chrono = std::chrono;
    const auto since_epoch = chrono::floor<chrono::milliseconds>(when);
    const auto day = chrono::floor<chrono::days>(since_epoch);
    const chrono::year_month_day date{day};
    const chrono::hh_mm_ss clock{since_epoch - day};
    std::array<char, 24> text{"0000-00-00T00:00:00.000"};
    text.back() = 'Z';
    const auto put = [&text](std::size_t end, auto value) {
        for (auto left = static_cast<unsigned>(value); left > 0; left /= 10) {
            text[--end] = static_cast<char>('0' + left % 10);
        }
    };
    put(4, static_cast<int>(date.year()));
    put(7, static_cast<unsigned>(date.month()));
    put(10, static_cast<unsigned>(date.day()));
    put(13, clock.hours().count());
    put(16, clock.minutes().count());
    put(19, clock.seconds().count());
    put(23, clock.subseconds().count());
    out.append(text.data(), text.size());
}

void format_text(const log_record& record, wall_time when, std::string& out) {
    out += "time=";
    append_rfc3339(out, when);
    out += " level=";
    out += to_string(record.level);
    // Quoted even where it need not be, so that the eye finds it.
    out += " msg=";
    out += quoted(record.message);
    for (const log_field& field : record.fields) {
        out += ' ';
        out += field.key;
        out += '=';
        append_value(out, field.value, append_logfmt_value);
    }
    out += '\n';
}

void format_json(const log_record& record, wall_time when, std::string& out) {
    out += R"({"time":")";
    append_rfc3339(out, when);
    out += R"(","level":")";
    out += to_string(record.level);
    out += R"(","msg":)";
    append_json_string(out, record.message);
    for (const log_field& field : record.fields) {
        out += R"(,")";
        out += field.key;
        out += R"(":)";
        append_value(out, field.value, append_json_string);
    }
    out += "}\n";
}

void format(log_format format, const log_record& record, wall_time when, std::string& out) {
    switch (format) {
        case log_format::text:
            return format_text(record, when, out);
        case log_format::json:
            return format_json(record, when, out);
    }
}

}  // namespace monolock::telemetry
