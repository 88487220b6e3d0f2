#include "cli/moment.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace monolock::cli {

namespace {

constexpr std::string_view form = "0000-00-00T00:00:00.000";
constexpr std::array<std::size_t, 6> lengths{10, 16, 19, 21, 22, 23};  // where it may end

bool is_digit(char letter) noexcept {
    return letter >= '0' && letter <= '9';
}

bool fits_form(std::string_view text) noexcept {
    return std::ranges::find(lengths, text.size()) != lengths.end() &&
           std::ranges::equal(text, form.substr(0, text.size()), [](char is, char should) {
               return should == '0' ? is_digit(is) : is == should;
           });
}

}  // namespace

std::optional<telemetry::wall_time> parse_moment(std::string_view text) {
    if (text.ends_with('Z') && text.size() > lengths.front() + 1) {
        text.remove_suffix(1);
    }
    if (!fits_form(text)) {
        return std::nullopt;
    }
    const std::string whole = std::string{text} + std::string{form.substr(text.size())};
    const auto number = [&whole](std::size_t begin, std::size_t count) {
        int value = 0;
        for (const char digit : std::string_view{whole}.substr(begin, count)) {
            value = value * 10 + (digit - '0');
        }
        return value;
    };
    const std::chrono::year_month_day date{std::chrono::year{number(0, 4)},
                                           std::chrono::month{static_cast<unsigned>(number(5, 2))},
                                           std::chrono::day{static_cast<unsigned>(number(8, 2))}};
    const int hour = number(11, 2);
    const int minute = number(14, 2);
    const int second = number(17, 2);
    // Others do not fit a wall_time.
    const bool representable = number(0, 4) >= 1970 && number(0, 4) <= 2261;
    if (!date.ok() || !representable || hour > 23 || minute > 59 || second > 59) {
        return std::nullopt;
    }
    return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
           std::chrono::seconds{second} + std::chrono::milliseconds{number(20, 3)};
}

}  // namespace monolock::cli
