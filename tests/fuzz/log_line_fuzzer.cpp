// The lines of the diagnostic log: one record is one line whatever its texts hold, and a reader
// that knows nothing but the two formats gets back each text, and the time to the millisecond.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/choices.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "telemetry/log_record.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace telemetry = monolock::telemetry;
using fuzz::choices;
using fuzz::require;

void append_utf8(std::string& out, std::uint32_t point) {
    if (point < 0x80) {
        out += static_cast<char>(point);
        return;
    }
    const unsigned more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr std::array lead{0x00U, 0xC0U, 0xE0U, 0xF0U};
    out += static_cast<char>(lead[more] | point >> (6 * more));
    for (unsigned left = more; left-- > 0;) {
        out += static_cast<char>(0x80U | (point >> (6 * left) & 0x3FU));
    }
}

// Takes a line apart; whatever is not as it should be is required away.
class reader {
public:
    explicit reader(std::string_view line) : left_{line} {}

    void take(std::string_view exactly) {
        require(left_.starts_with(exactly));
        left_.remove_prefix(exactly.size());
    }
    void take_end() const { require(left_.empty()); }

    std::string_view take_up_to(char end) {
        const std::string_view taken = left_.substr(0, left_.find(end));
        left_.remove_prefix(taken.size());
        return taken;
    }

    std::string take_logfmt() {
        if (!left_.starts_with('"')) {
            const std::string_view bare = take_up_to(' ');
            require(!bare.empty() && bare.find_first_of("=\"\\") == std::string_view::npos);
            return std::string{bare};
        }
        return take_quoted([this](std::string& out, char kind) {
            if (kind == 'x') {
                out += static_cast<char>(take_hex(2));
            } else {
                require(kind == 'u');
                take("{");
                append_utf8(out, take_hex(take_size_up_to('}')));
                take("}");
            }
        });
    }

    std::string take_json() {
        return take_quoted([this](std::string& out, char kind) {
            require(kind == 'u');
            append_utf8(out, take_hex(4));
        });
    }

private:
    template <class Escape>
    std::string take_quoted(Escape take_escape) {
        std::string out;
        take("\"");
        for (;;) {
            require(!left_.empty());
            const char letter = left_.front();
            left_.remove_prefix(1);
            if (letter == '"') {
                return out;
            }
            if (letter != '\\') {
                out += letter;
                continue;
            }
            require(!left_.empty());
            const char kind = left_.front();
            left_.remove_prefix(1);
            const std::string_view known = "nrt\"\\";
            if (const std::size_t which = known.find(kind); which != std::string_view::npos) {
                out += "\n\r\t\"\\"[which];
            } else {
                take_escape(out, kind);
            }
        }
    }

    std::size_t take_size_up_to(char end) const {
        const std::size_t size = left_.find(end);
        require(size != std::string_view::npos && size >= 1 && size <= 6);
        return size;
    }

    std::uint32_t take_hex(std::size_t digits) {
        require(left_.size() >= digits);
        std::uint32_t value = 0;
        for (const char letter : left_.substr(0, digits)) {
            const std::size_t digit = std::string_view{"0123456789abcdef"}.find(letter);
            require(digit != std::string_view::npos);
            value = value * 16 + static_cast<std::uint32_t>(digit);
        }
        left_.remove_prefix(digits);
        return value;
    }

    std::string_view left_;
};

// The text as JSON can carry it: each byte that is not part of valid UTF-8 is U+FFFD.
std::string as_json_carries(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t size = std::min<std::size_t>(4, text.size());
        while (size > 0 && !(fuzz::utf8_oracle(text.substr(0, size)) &&
                             (size == 1 || !fuzz::utf8_oracle(text.substr(0, 1))))) {
            --size;
        }
        out += size == 0 ? "\xEF\xBF\xBD" : text.substr(0, size);
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return out;
}

// "2026-03-01T09:30:00.250Z" as milliseconds since 1970, days counted by the Julian day number.
std::int64_t milliseconds_of(std::string_view text) {
    std::array<std::int64_t, 7> part{};
    std::size_t which = 0;
    require(text.size() == 24 && text.back() == 'Z');
    for (const char letter : text.substr(0, 23)) {
        if (letter < '0' || letter > '9') {
            require(letter == "--T::."[which]);
            ++which;
        } else {
            part[which] = part[which] * 10 + (letter - '0');
        }
    }
    const auto [year, month, day, hour, minute, second, millisecond] = part;
    const std::int64_t before_march = (14 - month) / 12;
    const std::int64_t years = year + 4800 - before_march;
    const std::int64_t months = month + 12 * before_march - 3;
    const std::int64_t days = day + (153 * months + 2) / 5 + 365 * years + years / 4 - years / 100 +
                              years / 400 - 32045 - 2440588;
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millisecond;
}

constexpr std::array<std::string_view, 4> keys{"lock", "identity", "n", "m"};

struct content {
    telemetry::wall_time when;
    std::uint8_t level;
    std::string_view message;
    std::array<telemetry::log_field, keys.size()> fields;
};

void require_time(std::string_view text, telemetry::wall_time when) {
    const auto exact = std::chrono::floor<std::chrono::milliseconds>(when).time_since_epoch();
    require(milliseconds_of(text) == exact.count());
}

void check_text(const content& what, std::string_view line) {
    reader at{line};
    at.take("time=");
    require_time(at.take_up_to(' '), what.when);
    at.take(" level=");
    require(at.take_up_to(' ') == to_string(telemetry::log_level{what.level}));
    at.take(" msg=");
    require(at.take_logfmt() == what.message);
    for (const auto& [key, value] : what.fields) {
        at.take(" " + std::string{key} + "=");
        const std::string read = at.take_logfmt();
        if (const auto* const text = std::get_if<std::string_view>(&value)) {
            require(read == *text);
        } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
            require(read == std::to_string(*number));
        } else {
            require(read == std::to_string(std::get<std::uint64_t>(value)));
        }
    }
    at.take_end();
}

void check_json(const content& what, std::string_view line) {
    reader at{line};
    at.take("{\"time\":");
    require_time(at.take_json(), what.when);
    at.take(",\"level\":");
    require(at.take_json() == to_string(telemetry::log_level{what.level}));
    at.take(",\"msg\":");
    require(at.take_json() == as_json_carries(what.message));
    for (const auto& [key, value] : what.fields) {
        at.take(",\"" + std::string{key} + "\":");
        if (const auto* const text = std::get_if<std::string_view>(&value)) {
            require(at.take_json() == as_json_carries(*text));
        } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
            at.take(std::to_string(*number));
        } else {
            at.take(std::to_string(std::get<std::uint64_t>(value)));
        }
    }
    at.take("}");
    at.take_end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices choose{data, size};
    content what{};
    what.level = choose.next() % 4;
    // Within the years that nanoseconds since 1970 can tell.
    what.when =
        telemetry::wall_time{std::chrono::nanoseconds{static_cast<std::int64_t>(choose.number(8))}};
    what.message = choose.text(choose.next() % 32);
    const std::string_view lock = choose.text(choose.next() % 32);
    const auto number = choose.number(8);
    what.fields = {{{keys[0], lock},
                    {keys[1], std::string_view{}},
                    {keys[2], number},
                    {keys[3], static_cast<std::int64_t>(number)}}};
    what.fields[1].value = choose.rest();

    const telemetry::log_record record{
        .level = telemetry::log_level{what.level}, .message = what.message, .fields = what.fields};
    for (const auto format : {telemetry::log_format::text, telemetry::log_format::json}) {
        std::string line;
        telemetry::format(format, record, what.when, line);
        require(line.ends_with('\n'));
        line.pop_back();
        require(fuzz::is_one_line(line));
        format == telemetry::log_format::text ? check_text(what, line) : check_json(what, line);
    }
    return 0;
}
