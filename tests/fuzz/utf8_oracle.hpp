#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace monolock::fuzz {

// Whether the text is well-formed UTF-8, decided the other way round than src/protocol does: decode
// whatever the lead byte's run of ones promises, and judge the value.
inline bool utf8_oracle(std::string_view text) {
    constexpr std::uint32_t smallest_of_length[] = {0, 0, 0x80, 0x800, 0x10000};
    while (!text.empty()) {
        const auto lead = static_cast<std::uint8_t>(text[0]);
        const auto ones = static_cast<std::size_t>(std::countl_one(lead));
        const std::size_t length = ones == 0 ? 1 : ones;
        if (ones == 1 || length > 4 || length > text.size()) {
            return false;
        }
        std::uint32_t value = lead & (0xFFU >> ones);
        for (const char next : text.substr(1, length - 1)) {
            const auto byte = static_cast<std::uint8_t>(next);
            if (std::countl_one(byte) != 1) {
                return false;
            }
            value = value * 64 + byte % 64;
        }
        const bool surrogate = value / 0x800 == 0x1B;  // U+D800 to U+DFFF
        if (value < smallest_of_length[length] || surrogate || value > 0x10FFFF) {
            return false;
        }
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace monolock::fuzz
