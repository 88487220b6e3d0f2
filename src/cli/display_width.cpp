#include "cli/display_width.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace monolock::cli {

namespace {

struct range {
    char32_t first;
    char32_t last;
};

// Both sorted.
constexpr std::array zero_wide{
    range{0x0300, 0x036F}, range{0x0483, 0x0489}, range{0x0591, 0x05BD},   range{0x0610, 0x061A},
    range{0x064B, 0x065F}, range{0x093C, 0x093C}, range{0x0941, 0x0948},   range{0x0E31, 0x0E31},
    range{0x0E34, 0x0E3A}, range{0x0E47, 0x0E4E}, range{0x1AB0, 0x1AFF},   range{0x1DC0, 0x1DFF},
    range{0x200B, 0x200D}, range{0x20D0, 0x20FF}, range{0x302A, 0x302D},   range{0x3099, 0x309A},
    range{0xFE00, 0xFE0F}, range{0xFE20, 0xFE2F}, range{0x1F3FB, 0x1F3FF}, range{0xE0100, 0xE01EF},
};
constexpr std::array two_wide{
    range{0x1100, 0x115F},   range{0x231A, 0x231B},   range{0x2E80, 0x303E},
    range{0x3041, 0x33FF},   range{0x3400, 0x4DBF},   range{0x4E00, 0xA4CF},
    range{0xA960, 0xA97F},   range{0xAC00, 0xD7A3},   range{0xF900, 0xFAFF},
    range{0xFE30, 0xFE6F},   range{0xFF00, 0xFF60},   range{0xFFE0, 0xFFE6},
    range{0x1F300, 0x1F64F}, range{0x1F680, 0x1F6FF}, range{0x1F900, 0x1F9FF},
    range{0x20000, 0x3FFFD},
};

bool is_in(std::span<const range> ranges, char32_t point) noexcept {
    const auto found = std::ranges::lower_bound(ranges, point, {}, &range::last);
    return found != ranges.end() && found->first <= point;
}

std::size_t width_of(char32_t point) noexcept {
    if (point < 0x300 || !is_in(zero_wide, point)) {
        return point >= 0x1100 && is_in(two_wide, point) ? 2 : 1;
    }
    return 0;
}

bool continues(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

std::size_t display_width(std::string_view text) noexcept {
    std::size_t width = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at++]);
        char32_t point = lead < 0x80U    ? lead
                         : lead >= 0xF0U ? lead & 7U
                         : lead >= 0xE0U ? lead & 15U
                                         : lead & 31U;
        for (; at < text.size() && continues(text[at]); ++at) {
            point = point << 6U | (static_cast<unsigned char>(text[at]) & 0x3FU);
        }
        width += width_of(point);
    }
    return width;
}

}  // namespace monolock::cli
