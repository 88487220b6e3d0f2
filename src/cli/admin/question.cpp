#include "cli/admin/question.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>

#include "cli/admin/admin_error.hpp"
#include "posix/descriptor.hpp"
#include "posix/whole_io.hpp"

namespace monolock::cli {

namespace {

// The line that is typed; nothing if none comes.
std::optional<std::string> typed_line() {
    std::string line;
    for (char letter = 0;;) {
        if (posix::read_some(STDIN_FILENO, &letter, 1) <= 0) {
            return std::nullopt;
        }
        if (letter == '\n') {
            return line;
        }
        line += letter;  // a terminal's line has an end: 4096 bytes
    }
}

// Whether the person can see it.
bool show(std::string_view text) noexcept {
    const auto show_on = [text](int fd) { return ::isatty(fd) == 1 && posix::write_all(fd, text); };
    if (show_on(STDERR_FILENO) || show_on(STDIN_FILENO)) {
        return true;
    }
    // Either may be open to be read only. The terminal that is read has a name to be opened by.
    std::array<char, PATH_MAX> name{};
    if (::ttyname_r(STDIN_FILENO, name.data(), name.size()) != 0) {
        return false;
    }
    const posix::descriptor screen{::open(name.data(), O_WRONLY | O_NOCTTY | O_CLOEXEC)};
    return screen && show_on(screen.get());
}

std::string_view without_blanks_around(std::string_view text) noexcept {
    constexpr std::string_view blanks = " \t\r";
    const std::size_t begin = text.find_first_not_of(blanks);
    return begin == std::string_view::npos
               ? ""
               : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace

bool can_ask() noexcept {
    return ::isatty(STDIN_FILENO) == 1;
}

void say_on_terminal(std::string_view text) {
    if (!show(text)) {
        throw admin_error{exit_code::usage,
                          "nobody was ended, because the terminal that is standard input cannot "
                          "show the question (--yes: do not ask)"};
    }
}

bool ask_on_terminal(std::string_view question) {
    while (::tcflush(STDIN_FILENO, TCIFLUSH) != 0 && errno == EINTR) {
    }
    say_on_terminal(std::string{question} + " [y/N] ");
    const auto answer = typed_line();
    if (!answer) {
        static_cast<void>(show("\n"));
    }
    return answer && is_yes(*answer);
}

bool is_yes(std::string_view line) noexcept {
    constexpr std::array<std::string_view, 2> yes{"y", "yes"};
    const std::string_view answer = without_blanks_around(line);
    const auto same = [](char typed, char letter) { return (typed | 0x20) == letter; };
    return std::ranges::any_of(
        yes, [&](std::string_view each) { return std::ranges::equal(answer, each, same); });
}

}  // namespace monolock::cli
