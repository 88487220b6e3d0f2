#pragma once

#include <string_view>

namespace monolock::config {

// Whether the pattern matches the whole text, case and all. `*` is any run of characters, `/`
// included, also none; `?` is exactly one character, a code point; everything else is itself, and
// there is no escape. Both are meant to be valid UTF-8; where the text is not, a byte and the
// continuation bytes behind it are one character. Takes time linear in pattern × text, and
// allocates nothing.
[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

// What every text that the pattern matches begins with: the pattern up to its first wildcard.
[[nodiscard]] std::string_view literal_prefix(std::string_view pattern) noexcept;

}  // namespace monolock::config
