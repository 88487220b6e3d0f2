#include "telemetry/audit_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "protocol/utf8.hpp"

namespace monolock::telemetry {

namespace {

namespace chrono = std::chrono;

constexpr std::array<std::string_view, 4> end_reasons{"graceful", "expired", "io_timeout", "force"};

void append_utf8(std::string& out, char32_t point) {
    const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80U) {
        put(point);
    } else if (point < 0x800U) {
        put(0xC0U | point >> 6U);
        put(0x80U | (point & 0x3FU));
    } else if (point < 0x10000U) {
        put(0xE0U | point >> 12U);
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    } else {
        put(0xF0U | point >> 18U);
        put(0x80U | (point >> 12U & 0x3FU));
        put(0x80U | (point >> 6U & 0x3FU));
        put(0x80U | (point & 0x3FU));
    }
}

constexpr std::optional<char> short_escape(char letter) noexcept {
    switch (letter) {
        case '"':
        case '\\':
        case '/':
            return letter;
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return std::nullopt;
    }
}

// Walks along a line. The first thing that is not as it must be is noted, and all that follows is
// of no account: callers may go on and ask once at the end.
class cursor {
public:
    explicit cursor(std::string_view line) noexcept : line_{line}, rest_{line} {}

    [[nodiscard]] bool failed() const noexcept { return expected_ != nullptr; }
    // "expected a token at column 17".
    [[nodiscard]] std::string why() const {
        return std::string{"expected "} + expected_ + " at column " +
               std::to_string(line_.size() - rest_.size() + 1);
    }

    // Whether it could be a record if the line went on.
    [[nodiscard]] bool breaks_off() const noexcept { return breaks_off_; }

    void fail(const char* expected, bool breaks_off = false) noexcept {
        if (!failed()) {
            expected_ = expected;
            breaks_off_ = breaks_off;
        }
    }
    // Whether it was there; if not, that is no failure.
    bool skip(std::string_view text) noexcept {
        if (failed() || !rest_.starts_with(text)) {
            return false;
        }
        rest_.remove_prefix(text.size());
        return true;
    }
    void take(std::string_view text, const char* expected) noexcept {
        if (!skip(text)) {
            fail(expected, is_begun(text));
        }
    }
    // Whether what is left of the line is the beginning of that.
    [[nodiscard]] bool is_begun(std::string_view text) const noexcept {
        return text.starts_with(rest_);
    }
    void take_end() noexcept {
        take("}", "the end of the record");
        if (!rest_.empty()) {
            fail("nothing more");
        }
    }

    std::uint64_t take_number(const char* expected,
                              std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
        std::uint64_t value = 0;
        const char* const begin = rest_.data();
        const auto [end, error] = std::from_chars(begin, begin + rest_.size(), value);
        const bool leading_zero = end - begin > 1 && *begin == '0';
        if (failed() || error != std::errc{} || leading_zero || value > most) {
            fail(expected, rest_.empty());
            return 0;
        }
        rest_.remove_prefix(static_cast<std::size_t>(end - begin));
        return value;
    }

    chrono::milliseconds take_span() {
        constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
        return chrono::milliseconds{static_cast<std::int64_t>(take_number("milliseconds", most))};
    }

    // A JSON string, of valid UTF-8. Decoded into `room` if it has escapes.
    std::string_view take_text(std::string& room, const char* expected) {
        take("\"", expected);
        if (failed()) {
            return {};
        }
        const std::size_t plain = plain_bytes(rest_);
        if (plain < rest_.size() && rest_[plain] == '"') {
            const std::string_view text = rest_.substr(0, plain);
            if (!is_text(text)) {
                fail(expected);
                return {};
            }
            rest_.remove_prefix(plain + 1);
            return text;
        }
        return take_escaped(room, expected);
    }

    wall_time take_time() noexcept {
        // 2026-03-01T09:30:00.250Z
        const auto number = [this](std::size_t at, std::size_t digits) {
            int value = 0;
            for (std::size_t index = at; index < at + digits; ++index) {
                const int digit = rest_[index] - '0';
                value = digit < 0 || digit > 9 ? -100'000 : value * 10 + digit;
            }
            return value;
        };
        constexpr std::string_view form = "0000-00-00T00:00:00.000Z";
        const auto is_mark = [](char letter) { return letter != '0'; };
        for (std::size_t index = 0; index < form.size() && !failed(); ++index) {
            if (index >= rest_.size()) {
                fail("a time", true);
            } else if (is_mark(form[index]) && rest_[index] != form[index]) {
                fail("a time");
            }
        }
        if (failed()) {
            return {};
        }
        const int month = number(5, 2);
        const int day = number(8, 2);
        const int hour = number(11, 2);
        const int minute = number(14, 2);
        const int second = number(17, 2);
        const int millisecond = number(20, 3);
        const int year = number(0, 4);
        // Later and earlier ones do not fit a wall_time.
        const auto in = [](int value, int least, int most) {
            return value >= least && value <= most;
        };
        if (!in(year, 1970, 2261) || !in(month, 1, 12) || !in(day, 1, 31) || !in(hour, 0, 23) ||
            !in(minute, 0, 59) || !in(second, 0, 59) || !in(millisecond, 0, 999)) {
            fail("a time");
            return {};
        }
        const chrono::year_month_day date{chrono::year{year},
                                          chrono::month{static_cast<unsigned>(month)},
                                          chrono::day{static_cast<unsigned>(day)}};
        if (!date.ok()) {
            fail("a time");
            return {};
        }
        rest_.remove_prefix(form.size());
        return chrono::sys_days{date} + chrono::hours{hour} + chrono::minutes{minute} +
               chrono::seconds{second} + chrono::milliseconds{millisecond};
    }

private:
    // How many bytes stand for themselves, up to a quote, a backslash or a control character.
    static std::size_t plain_bytes(std::string_view text) noexcept {
        const auto* const stop = std::ranges::find_if(text, [](char letter) {
            return letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < 0x20U;
        });
        return static_cast<std::size_t>(stop - text.begin());
    }
    static bool is_text(std::string_view text) noexcept {
        const bool ascii = std::ranges::all_of(
            text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80U; });
        return ascii || protocol::is_valid_utf8(text);
    }

    std::string_view take_escaped(std::string& room, const char* expected) {
        room.clear();
        while (!failed()) {
            const std::size_t plain = plain_bytes(rest_);
            room += rest_.substr(0, plain);
            rest_.remove_prefix(plain);
            if (skip("\"")) {
                break;
            }
            take("\\", expected);
            take_escape(room, expected);
        }
        // By way of escapes too: half a surrogate pair is no text.
        if (!failed() && !is_text(room)) {
            fail(expected);
        }
        return room;
    }

    void take_escape(std::string& room, const char* expected) {
        if (failed() || rest_.empty()) {
            fail(expected, true);
            return;
        }
        const char letter = rest_.front();
        rest_.remove_prefix(1);
        if (letter != 'u') {
            const auto simple = short_escape(letter);
            if (!simple) {
                fail(expected);
                return;
            }
            room += *simple;
            return;
        }
        char32_t point = take_hex(expected);
        if (point >= 0xD800U && point < 0xDC00U && skip("\\u")) {
            const char32_t low = take_hex(expected);
            if (low < 0xDC00U || low > 0xDFFFU) {
                fail(expected);
                return;
            }
            point = 0x10000U + ((point - 0xD800U) << 10U) + (low - 0xDC00U);
        }
        append_utf8(room, point);
    }

    char32_t take_hex(const char* expected) noexcept {
        constexpr std::size_t digits = 4;
        std::uint32_t value = 0;
        const char* const begin = rest_.data();
        if (failed() || rest_.size() < digits ||
            std::from_chars(begin, begin + digits, value, 16).ptr != begin + digits) {
            fail(expected, rest_.size() < digits);
            return 0;
        }
        rest_.remove_prefix(digits);
        return value;
    }

    std::string_view line_;
    std::string_view rest_;
    const char* expected_ = nullptr;
    bool breaks_off_ = false;
};

enum class kind { granted, released, denied, force_release, kick_waiter, gap };

std::optional<kind> take_kind(cursor& at) {
    constexpr std::array<std::pair<std::string_view, kind>, 6> words{
        {{"granted\"", kind::granted},
         {"released\"", kind::released},
         {"denied\"", kind::denied},
         {"force_release\"", kind::force_release},
         {"kick_waiter\"", kind::kick_waiter},
         {"audit_gap\"", kind::gap}}};
    bool breaks_off = false;
    for (const auto& [word, meaning] : words) {
        if (at.skip(word)) {
            return meaning;
        }
        breaks_off = breaks_off || at.is_begun(word);
    }
    at.fail("an event", breaks_off);
    return std::nullopt;
}

protocol::fencing_token take_token(cursor& at) {
    at.take(",\"token\":", "\"token\"");
    return {at.take_number("a token")};
}

std::string_view take_reason(cursor& at) {
    at.take(",\"reason\":\"", "\"reason\"");
    bool breaks_off = false;
    for (const std::string_view word : end_reasons) {
        if (at.skip(word)) {
            at.take("\"", "a reason");
            return word;
        }
        breaks_off = breaks_off || at.is_begun(word);
    }
    at.fail("a reason", breaks_off);
    return {};
}

audit_event take_event(cursor& at, kind what) {
    switch (what) {
        case kind::granted: {
            audit_granted event{.token = take_token(at)};
            at.take(",\"wait_ms\":", "\"wait_ms\"");
            event.wait = at.take_span();
            return event;
        }
        case kind::released: {
            audit_released event{.token = take_token(at), .held = {}, .reason = {}};
            at.take(",\"held_ms\":", "\"held_ms\"");
            event.held = at.take_span();
            event.reason = take_reason(at);
            return event;
        }
        case kind::force_release:
            return audit_force_release{.token = take_token(at)};
        case kind::kick_waiter:
            return audit_kick_waiter{};
        case kind::denied:
        case kind::gap:
            break;
    }
    return audit_denied{};
}

}  // namespace

audit_line audit_reader::read(std::string_view line) {
    cursor at{line};
    at.take("{\"time\":\"", "\"time\"");
    const wall_time time = at.take_time();
    at.take("\",\"event\":\"", "\"event\"");
    const auto what = take_kind(at);
    audit_line out;
    if (what == kind::gap) {
        at.take(",\"lost\":", "\"lost\"");
        out = audit_gap{.time = time, .lost = at.take_number("a number")};
    } else if (what) {
        audit_record& record = out.emplace<audit_record>();
        record.time = time;
        at.take(",\"lock\":", "\"lock\"");
        record.lock = at.take_text(decoded_[0], "a name");
        at.take(",\"identity\":", "\"identity\"");
        record.identity = at.take_text(decoded_[1], "an identity");
        at.take(",\"remote_addr\":", "\"remote_addr\"");
        record.remote_addr = at.take_text(decoded_[2], "an address");
        record.event = take_event(at, *what);
    }
    at.take_end();
    if (at.failed()) {
        return audit_malformed{.why = at.why(), .breaks_off = at.breaks_off()};
    }
    return out;
}

}  // namespace monolock::telemetry
