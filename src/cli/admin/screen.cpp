#include "cli/admin/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/console.hpp"

namespace monolock::cli {

std::string frame_of(std::string_view lines, std::size_t count_max) {
    std::string out = "\x1b[H";
    for (std::size_t count = 0; count < count_max && !lines.empty(); ++count) {
        const std::size_t end = lines.find('\n');
        out += count == 0 ? "" : "\r\n";  // none behind the last, which would scroll
        out += lines.substr(0, end);
        out += "\x1b[K";
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
    return out + "\x1b[J";
}

std::size_t screen_line_count() noexcept {
    constexpr std::size_t usual = 24;
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
    return known ? size.ws_row : usual;
}

own_screen::own_screen() noexcept {
    static_cast<void>(print("\x1b[?1049h\x1b[?25l\x1b[?7l"));
    // In the background the keyboard is not ours, and asking for it would stop us.
    if (::tcgetpgrp(STDIN_FILENO) != ::getpgrp() || ::tcgetattr(STDIN_FILENO, &keyboard_) != 0) {
        return;
    }
    termios quiet = keyboard_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    keyboard_changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
}

own_screen::~own_screen() {
    if (keyboard_changed_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {
        ::tcsetattr(STDIN_FILENO, TCSANOW, &keyboard_);
    }
    static_cast<void>(print("\x1b[?7h\x1b[?25h\x1b[?1049l"));
}

}  // namespace monolock::cli
