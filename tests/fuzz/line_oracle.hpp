#pragma once

#include <algorithm>
#include <string_view>

#include "fuzz/utf8_oracle.hpp"

namespace monolock::fuzz {

// Whether the text is one line of UTF-8 that neither moves a cursor nor ends early.
inline bool is_one_line(std::string_view text) {
    const bool controls = std::ranges::any_of(text, [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
    });
    return !controls && utf8_oracle(text);
}

}  // namespace monolock::fuzz
