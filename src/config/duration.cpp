#include "config/duration.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace monolock::config {

namespace {

struct unit {
    std::string_view name;
    std::uint64_t nanoseconds;
};

// µ has two code points: the micro sign and the Greek letter.
constexpr std::array<unit, 8> units{{{"ns", 1},
                                     {"us", 1'000},
                                     {"\u00B5s", 1'000},
                                     {"\u03BCs", 1'000},
                                     {"ms", 1'000'000},
                                     {"s", 1'000'000'000},
                                     {"m", 60'000'000'000},
                                     {"h", 3'600'000'000'000}}};

// The most of a positive duration; a negative one may be one more.
constexpr auto positive_max =
    static_cast<std::uint64_t>(std::numeric_limits<std::chrono::nanoseconds::rep>::max());

constexpr bool is_digit(char letter) noexcept {
    return letter >= '0' && letter <= '9';
}

diagnostic not_a_duration() {
    return {"not a duration; write it like 5s, 250ms, 1m30s or 1.5h"};
}

diagnostic too_long() {
    return {"duration too long; about 292 years is the most"};
}

std::string_view take_while(std::string_view& text, bool (*wanted)(char)) {
    std::size_t size = 0;
    while (size < text.size() && wanted(text[size])) {
        ++size;
    }
    const std::string_view taken = text.substr(0, size);
    text.remove_prefix(size);
    return taken;
}

const unit* find_unit(std::string_view name) noexcept {
    for (const unit& candidate : units) {
        if (candidate.name == name) {
            return &candidate;
        }
    }
    return nullptr;
}

// whole × unit, or nothing if that is more than `most`.
std::optional<std::uint64_t> scale_whole(std::string_view digits, std::uint64_t unit_ns,
                                         std::uint64_t most) noexcept {
    std::uint64_t value = 0;
    for (const char digit : digits) {
        const auto amount = static_cast<std::uint64_t>(digit - '0');
        if (value > (most - amount) / 10) {
            return std::nullopt;
        }
        value = value * 10 + amount;
    }
    if (value > most / unit_ns) {
        return std::nullopt;
    }
    return value * unit_ns;
}

// 0.digits × unit, rounded down. From the last digit to the first, because floor((floor(x) + n) /
// 10) equals floor((x + n) / 10): exact for any number of digits, and nothing grows past 10 × unit.
std::uint64_t scale_fraction(std::string_view digits, std::uint64_t unit_ns) noexcept {
    std::uint64_t value = 0;
    for (std::size_t index = digits.size(); index-- > 0;) {
        value = (value + static_cast<std::uint64_t>(digits[index] - '0') * unit_ns) / 10;
    }
    return value;
}

// One number with its unit, taken off the front of the text; not above `most`.
parsed<std::uint64_t> take_part(std::string_view& text, std::uint64_t most) {
    const std::string_view whole = take_while(text, is_digit);
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take_while(text, is_digit);
    }
    if (whole.empty() && fraction.empty()) {
        return not_a_duration();
    }
    const std::string_view name =
        take_while(text, [](char letter) { return !is_digit(letter) && letter != '.'; });
    if (name.empty()) {
        return diagnostic{"a duration needs a unit, like 5s or 250ms"};
    }
    const unit* const found = find_unit(name);
    if (found == nullptr) {
        return diagnostic{"unknown unit of time; the units are ns, us, ms, s, m and h"};
    }
    const auto scaled = scale_whole(whole, found->nanoseconds, most);
    const std::uint64_t rest = scale_fraction(fraction, found->nanoseconds);
    if (!scaled || rest > most - *scaled) {
        return too_long();
    }
    return *scaled + rest;
}

// value / unit with as many decimals as it takes, and the unit's name.
void append_decimal(std::string& out, std::uint64_t value, const unit& in) {
    out += std::to_string(value / in.nanoseconds);
    std::uint64_t rest = value % in.nanoseconds;
    if (rest != 0) {
        out += '.';
        for (std::uint64_t digit = in.nanoseconds / 10; rest != 0; digit /= 10) {
            out += static_cast<char>('0' + rest / digit);
            rest %= digit;
        }
    }
    out += in.name;
}

}  // namespace

parsed<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) {
        text.remove_prefix(1);
    }
    if (text.empty()) {
        return not_a_duration();
    }
    if (text == "0") {
        return std::chrono::nanoseconds{0};
    }
    const std::uint64_t magnitude_max = positive_max + (negative ? 1 : 0);
    std::uint64_t total = 0;
    while (!text.empty()) {
        const auto part = take_part(text, magnitude_max - total);
        if (!part) {
            return part.error();
        }
        total += *part;
    }
    // Negated as unsigned: the smallest value has no positive counterpart.
    total = negative ? 0 - total : total;
    return std::chrono::nanoseconds{static_cast<std::chrono::nanoseconds::rep>(total)};
}

std::string format_duration(std::chrono::nanoseconds duration) {
    // Negated as unsigned: the smallest value has no positive counterpart.
    const bool negative = duration.count() < 0;
    auto left = static_cast<std::uint64_t>(duration.count());
    left = negative ? 0 - left : left;

    std::string out = negative ? "-" : "";
    if (left == 0) {
        return "0s";
    }
    if (left < 1'000'000'000) {
        const std::string_view name = left < 1'000 ? "ns" : left < 1'000'000 ? "us" : "ms";
        append_decimal(out, left, *find_unit(name));
        return out;
    }
    for (const std::string_view name : {"h", "m"}) {
        const unit& in = *find_unit(name);
        if (left >= in.nanoseconds) {
            append_decimal(out, left - left % in.nanoseconds, in);
            left %= in.nanoseconds;
        }
    }
    if (left != 0) {
        append_decimal(out, left, *find_unit("s"));
    }
    return out;
}

}  // namespace monolock::config
