#pragma once

#include <string>
#include <string_view>

namespace monolock::completion {

// The text with each `from` replaced.
[[nodiscard]] std::string replaced(std::string text, std::string_view from, std::string_view to);

// As one word of bash, zsh and (if there is no backslash in it) fish: in single quotes.
[[nodiscard]] std::string quoted_for_shell(std::string_view text);

}  // namespace monolock::completion
