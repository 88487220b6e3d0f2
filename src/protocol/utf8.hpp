#pragma once

#include <string_view>

namespace monolock::protocol {

// Whether the text is well-formed UTF-8 in the strict sense of Unicode's table 3-7: no overlong
// form, no surrogate, nothing above U+10FFFF, nothing cut off. U+0000 is well-formed.
[[nodiscard]] bool is_valid_utf8(std::string_view text) noexcept;

}  // namespace monolock::protocol
