#pragma once

#include <span>

namespace monolock::telemetry {

// What a terminal draws without ink or in no column of its own, by Unicode 14. Pure.

struct character_range {
    char32_t first;
    char32_t last;
};

// Whether one of the ranges, which are sorted, has it.
[[nodiscard]] bool is_in(std::span<const character_range> ranges, char32_t point) noexcept;

// A format character or one that is ignored by default: no width, or no ink. Names that differ only
// in these look the same.
[[nodiscard]] bool is_invisible(char32_t point) noexcept;

// Blank, and not U+0020: it has its width, and cannot be told from other blanks.
[[nodiscard]] bool is_odd_blank(char32_t point) noexcept;

// Drawn on the character before it, or joined with it: a nonspacing or enclosing mark, a vowel or
// final of Hangul. Some that is_invisible are among them.
[[nodiscard]] bool is_mark(char32_t point) noexcept;

}  // namespace monolock::telemetry
