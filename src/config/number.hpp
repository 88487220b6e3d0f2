#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace monolock::config {

// The whole text as a decimal number; nothing if it is anything else, or does not fit. There is no
// plus, and no blanks.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) noexcept {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc{} && stop == end ? std::optional{number} : std::nullopt;
}

}  // namespace monolock::config
