// Durations against arithmetic by hand: which texts are some, and to the nanosecond what they mean;
// and whatever is printed means what it was printed from.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/duration.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace config = monolock::config;
using monolock::fuzz::require;
using std::chrono::nanoseconds;
__extension__ using wide = unsigned __int128;

constexpr wide most = wide{1} << 63U;  // of a negative duration; one less of a positive

constexpr bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

std::optional<std::uint64_t> unit_of(std::string_view name) {
    const std::uint64_t second = 1'000'000'000;
    return name == "h"                                  ? std::optional{3600 * second}
           : name == "m"                                ? std::optional{60 * second}
           : name == "s"                                ? std::optional{second}
           : name == "ms"                               ? std::optional{second / 1000}
           : name == "us"                               ? std::optional{second / 1'000'000}
           : name == "\xC2\xB5s" || name == "\xCE\xBCs" ? std::optional{second / 1'000'000}
           : name == "ns"                               ? std::optional<std::uint64_t>{1}
                                                        : std::nullopt;
}

// The whole part of 0.digits × unit, by long multiplication: a column for each place behind the
// point, to which each digit of the unit adds its product with each digit of the fraction.
std::uint64_t whole_part(std::string_view digits, std::uint64_t unit) {
    constexpr std::size_t unit_digits = 13;  // an hour in nanoseconds
    std::array<std::uint64_t, 8192> columns{};
    std::uint64_t whole = 0;
    require(digits.size() + unit_digits < columns.size());
    std::uint64_t weight = 1;
    for (std::size_t place = 0; unit != 0; ++place, unit /= 10, weight *= 10) {
        for (std::size_t index = 0; index < digits.size(); ++index) {
            const std::uint64_t product =
                unit % 10 * static_cast<std::uint64_t>(digits[index] - '0');
            // 10^place × 10^-(index + 1)
            if (index + 1 > place) {
                columns[index + 1 - place] += product;
            } else {
                std::uint64_t power = 1;
                for (std::size_t up = index + 1; up < place; ++up) {
                    power *= 10;
                }
                whole += product * power;
            }
        }
    }
    std::uint64_t carry = 0;
    for (std::size_t column = digits.size(); column > 0; --column) {
        carry = (columns[column] + carry) / 10;
    }
    return whole + carry;
}

// Whether it is a duration; its nanoseconds, or `most` and more for too many.
std::optional<wide> magnitude_of(std::string_view text) {
    wide total = 0;
    do {
        const auto at_digits = std::ranges::find_if_not(text, is_digit);
        const std::string_view whole{text.begin(), at_digits};
        text.remove_prefix(whole.size());
        std::string_view fraction;
        const bool point = text.starts_with('.');
        if (point) {
            text.remove_prefix(1);
            fraction = {text.begin(), std::ranges::find_if_not(text, is_digit)};
            text.remove_prefix(fraction.size());
        }
        const auto* const end = std::ranges::find_if(
            text, [](char letter) { return letter == '.' || is_digit(letter); });
        const auto unit = unit_of({text.begin(), end});
        if (!unit || (whole.empty() && fraction.empty())) {
            return std::nullopt;
        }
        text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
        wide value = 0;
        for (const char digit : whole) {
            value = std::min(most * 10, value * 10 + static_cast<unsigned>(digit - '0'));
        }
        total += std::min(most + 1, value * *unit) + whole_part(fraction, *unit);
        total = std::min(most + 1, total);
    } while (!text.empty());
    return total;
}

std::optional<nanoseconds> oracle(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) {
        text.remove_prefix(1);
    }
    if (text == "0") {
        return nanoseconds{0};
    }
    const auto magnitude = magnitude_of(text);
    if (!magnitude || *magnitude > most - (negative ? 0 : 1)) {
        return std::nullopt;
    }
    const auto count = static_cast<std::uint64_t>(*magnitude);
    return nanoseconds{std::bit_cast<std::int64_t>(negative ? 0 - count : count)};
}

void require_printed(nanoseconds value) {
    const auto again = config::parse_duration(config::format_duration(value));
    require(again && *again == value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = monolock::fuzz::text_of(data, size);
    const auto parsed = config::parse_duration(text);
    const auto expected = oracle(text);
    require(static_cast<bool>(parsed) == expected.has_value());
    if (parsed) {
        require(*parsed == *expected);
        require_printed(*parsed);
    } else {
        require(!parsed.error().text.empty());
    }
    if (size == sizeof(std::int64_t)) {
        monolock::fuzz::choices number{data, size};
        require_printed(nanoseconds{std::bit_cast<std::int64_t>(number.number(size))});
    }
    return 0;
}
