#include "protocol/utf8.hpp"

#include <cstddef>
#include <cstdint>

namespace monolock::protocol {

namespace {

// What a lead byte promises: how many bytes follow, and the range of the first of them. The
// narrowed ranges are what excludes overlong forms (E0, F0), surrogates (ED) and values above
// U+10FFFF (F4).
struct lead {
    std::size_t following;
    std::uint8_t second_min;
    std::uint8_t second_max;
};

constexpr lead invalid_lead{.following = 0, .second_min = 1, .second_max = 0};

constexpr lead classify(std::uint8_t byte) noexcept {
    if (byte >= 0xC2 && byte <= 0xDF) {
        return {.following = 1, .second_min = 0x80, .second_max = 0xBF};
    }
    if (byte >= 0xE0 && byte <= 0xEF) {
        return {.following = 2,
                .second_min = static_cast<std::uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
                .second_max = static_cast<std::uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
    }
    if (byte >= 0xF0 && byte <= 0xF4) {
        return {.following = 3,
                .second_min = static_cast<std::uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
                .second_max = static_cast<std::uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
    }
    return invalid_lead;
}

}  // namespace

bool is_valid_utf8(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size();) {
        const auto first = static_cast<std::uint8_t>(text[at]);
        if (first < 0x80) {
            ++at;
            continue;
        }
        const lead expected = classify(first);
        if (expected.following == 0 || text.size() - at <= expected.following) {
            return false;
        }
        const auto second = static_cast<std::uint8_t>(text[at + 1]);
        if (second < expected.second_min || second > expected.second_max) {
            return false;
        }
        for (std::size_t next = 2; next <= expected.following; ++next) {
            if ((static_cast<std::uint8_t>(text[at + next]) & 0xC0U) != 0x80U) {
                return false;
            }
        }
        at += expected.following + 1;
    }
    return true;
}

}  // namespace monolock::protocol
