#pragma once

#include <cstddef>
#include <string_view>

namespace monolock::cli {

// How many columns of a terminal the text takes: none for a mark on another character and for what
// is not seen, two for a wide character of East Asia or an emoji, one for all else. As terminals
// agree on it for what is in use; who draws an ancient script otherwise has a table that is out of
// line, and nothing worse. The text is valid UTF-8 without control characters.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

}  // namespace monolock::cli
