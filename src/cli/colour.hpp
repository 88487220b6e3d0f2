#pragma once

#include <cstdint>
#include <string_view>

namespace monolock::cli {

enum class colour : std::uint8_t { plain, bold, yellow, red };

// What a terminal takes before and after a text in that colour; nothing for plain.
[[nodiscard]] std::string_view begin_of(colour what) noexcept;
[[nodiscard]] std::string_view end_of(colour what) noexcept;

// Whether standard output is a terminal, and nobody asked for no colour (NO_COLOR, TERM=dumb).
[[nodiscard]] bool is_standard_output_coloured() noexcept;

}  // namespace monolock::cli
