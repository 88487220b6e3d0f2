#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

#include "posix/descriptor.hpp"

namespace monolock::cli {

// What can end, or disturb, a watch that waits: signals, which are blocked from now on and read
// here, and that nobody reads standard output any more. SIGPIPE is blocked as well. Throws
// std::system_error.
class watch_interrupts {
public:
    // Without those signals that were ignored when the program was started, as nohup does.
    explicit watch_interrupts(std::span<const int> signals);

    // Readable when something is there.
    [[nodiscard]] int descriptor() const noexcept { return any_.get(); }
    // The next signal that has come.
    [[nodiscard]] std::optional<int> take() noexcept;
    // Whether nobody can read standard output any more.
    [[nodiscard]] static bool is_output_closed() noexcept;

    // Waits for so long; throws `interrupted` if something is there.
    void sleep(std::chrono::milliseconds time) const;
    // All of it to standard output; a reader that takes nothing does not keep an interrupt from
    // being heard. Throws `interrupted`; false if it cannot be written.
    [[nodiscard]] bool print(std::string_view text) const;

    // Lets the signal do to this process what it does to any; returns only if it is ignored, or if
    // that is to stop, and the process goes on.
    static void suffer(int number) noexcept;

private:
    posix::descriptor signals_;
    posix::descriptor any_;  // an epoll set of both
};

}  // namespace monolock::cli
