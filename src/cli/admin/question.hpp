#pragma once

#include <string>
#include <string_view>

namespace monolock::cli {

// Where standard input is a terminal, a person is asked before a claim is ended.

// Whether there is anybody to ask.
[[nodiscard]] bool can_ask() noexcept;

// Where the person sees it, even if standard error goes to a file. Throws admin_error if that
// cannot be: an answer to what nobody could read would be none.
void say_on_terminal(std::string_view text);

// Asks, and waits for a line; whether it is a yes. What was typed before the question stood there
// is thrown away: it answers something else. Throws as say_on_terminal() does.
[[nodiscard]] bool ask_on_terminal(std::string_view question);

// "y" or "yes", whatever the case, between blanks. Nothing else is. Pure.
[[nodiscard]] bool is_yes(std::string_view line) noexcept;

}  // namespace monolock::cli
