#include "telemetry/escape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "telemetry/characters.hpp"

namespace monolock::telemetry {

namespace {

// The first character of a text: its code point and bytes, or one byte that no valid UTF-8 starts
// with.
struct character {
    char32_t code_point;
    std::size_t size;
    bool valid;
};

// Strict, as protocol::is_valid_utf8 is (escape_test.cpp compares the two); text must not be empty.
character first_character(std::string_view text) noexcept {
    const auto byte = [text](std::size_t index) {
        return static_cast<std::uint8_t>(index < text.size() ? text[index] : '\0');
    };
    const std::uint8_t lead = byte(0);
    const character broken{.code_point = lead, .size = 1, .valid = false};
    if (lead < 0x80U) {
        return {.code_point = lead, .size = 1, .valid = true};
    }
    const std::size_t size = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
    constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    if (lead < 0xC2U || lead > 0xF4U) {
        return broken;
    }
    char32_t value = lead & (0xFFU >> (size + 1));
    for (std::size_t index = 1; index < size; ++index) {
        if ((byte(index) & 0xC0U) != 0x80U) {
            return broken;
        }
        value = value << 6U | (byte(index) & 0x3FU);
    }
    const bool surrogate = value >= 0xD800U && value <= 0xDFFFU;
    if (value < smallest[size] || surrogate || value > 0x10FFFFU) {
        return broken;
    }
    return {.code_point = value, .size = size, .valid = true};
}

// Characters that could end a line, move the cursor or reverse what a reader sees.
constexpr bool must_escape(char32_t point) noexcept {
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x61C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

void append_hex(std::string& out, const char* format, unsigned value) {
    std::array<char, 16> buffer{};
    const int size = std::snprintf(buffer.data(), buffer.size(), format, value);
    out.append(buffer.data(), static_cast<std::size_t>(size));
}

// The short escape that JSON and logfmt share for the character, or nothing.
constexpr std::string_view short_escape(char32_t point) noexcept {
    return point == U'"'    ? "\\\""
           : point == U'\\' ? "\\\\"
           : point == U'\n' ? "\\n"
           : point == U'\r' ? "\\r"
           : point == U'\t' ? "\\t"
                            : "";
}

// How much of the text stands for itself, whatever the format; most names do to their end.
std::size_t plain_bytes(std::string_view text) noexcept {
    const auto* const stop = std::find_if_not(text.begin(), text.end(), [](char letter) {
        return letter >= ' ' && letter < '\x7f' && letter != '"' && letter != '\\';
    });
    return static_cast<std::size_t>(stop - text.begin());
}

// Quotes and all. `escape` writes what is invalid, or has no short escape and `is_shown` does not
// let through: a character, and whether it comes right behind one that was let through.
template <class Shown, class Escape>
void append_quoted(std::string& out, std::string_view text, Shown is_shown, Escape escape) {
    out += '"';
    bool follows = false;
    while (true) {
        const std::size_t plain = plain_bytes(text);
        out += text.substr(0, plain);
        follows = follows || plain > 0;
        text.remove_prefix(plain);
        if (text.empty()) {
            break;
        }
        const character next = first_character(text);
        if (const auto known = short_escape(next.code_point); !known.empty()) {
            out += known;
            follows = false;
        } else if (next.valid && is_shown(next.code_point, follows)) {
            out += text.substr(0, next.size);
            follows = true;
        } else {
            escape(out, next);
            follows = false;
        }
        text.remove_prefix(next.size);
    }
    out += '"';
}

void append_logfmt_quoted(std::string& out, std::string_view text) {
    const auto is_shown = [](char32_t point, bool follows) {
        return !must_escape(point) && !is_invisible(point) && !is_odd_blank(point) &&
               (follows || !is_mark(point));
    };
    append_quoted(out, text, is_shown, [](std::string& to, const character& what) {
        append_hex(to, what.valid ? "\\u{%x}" : "\\x%02x", what.code_point);
    });
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    const auto is_shown = [](char32_t point, bool /*follows*/) { return !must_escape(point); };
    append_quoted(out, text, is_shown, [](std::string& to, const character& what) {
        append_hex(to, "\\u%04x", what.valid ? what.code_point : U'\uFFFD');
    });
}

void append_logfmt_value(std::string& out, std::string_view text) {
    const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
        return letter > ' ' && letter < '\x7f' && letter != '"' && letter != '\\' && letter != '=';
    });
    if (bare) {
        out.append(text);
    } else {
        append_logfmt_quoted(out, text);
    }
}

std::string quoted(std::string_view text) {
    std::string out;
    append_logfmt_quoted(out, text);
    return out;
}

std::string without_markup(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    for (const char each : json) {
        switch (each) {
            case '<':
                out += "\\u003c";
                break;
            case '>':
                out += "\\u003e";
                break;
            case '&':
                out += "\\u0026";
                break;
            default:
                out += each;
        }
    }
    return out;
}

}  // namespace monolock::telemetry
