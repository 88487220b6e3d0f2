#include "cli/display_width.hpp"

#include <array>

#include "telemetry/characters.hpp"

namespace monolock::cli {

namespace {

using range = telemetry::character_range;

// Sorted.
constexpr std::array two_wide{
    range{0x1100, 0x115F},   range{0x231A, 0x231B},   range{0x2E80, 0x303E},
    range{0x3041, 0x33FF},   range{0x3400, 0x4DBF},   range{0x4E00, 0xA4CF},
    range{0xA960, 0xA97F},   range{0xAC00, 0xD7A3},   range{0xF900, 0xFAFF},
    range{0xFE30, 0xFE6F},   range{0xFF00, 0xFF60},   range{0xFFE0, 0xFFE6},
    range{0x1F300, 0x1F64F}, range{0x1F680, 0x1F6FF}, range{0x1F900, 0x1F9FF},
    range{0x20000, 0x3FFFD},
};

std::size_t width_of(char32_t point) noexcept {
    if (telemetry::is_mark(point) || telemetry::is_invisible(point)) {
        return 0;
    }
    return point >= 0x1100 && telemetry::is_in(two_wide, point) ? 2 : 1;
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
