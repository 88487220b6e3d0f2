#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace monolock::cli {

// The control sequences here are those that xterm and all that came after it know.

// What draws the lines over whatever is there, without clearing it first, so that nothing flickers.
// At most so many lines; each ends in a newline. Pure.
[[nodiscard]] std::string frame_of(std::string_view lines, std::size_t count_max);

// How many lines the terminal at standard output has.
[[nodiscard]] std::size_t screen_line_count() noexcept;

// The terminal at standard output while it lives: a screen of its own without a cursor, whose lines
// are cut at the edge, and on which keys that are typed do not show. Then all is as it was.
class own_screen {
public:
    own_screen() noexcept;
    ~own_screen();
    own_screen(const own_screen&) = delete;
    own_screen& operator=(const own_screen&) = delete;

private:
    termios keyboard_{};  // as it was
    bool keyboard_changed_ = false;
};

}  // namespace monolock::cli
