#include "cli/boot_timer.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

namespace monolock::cli {

boot_timer::boot_timer() : fd_{timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)} {
    if (!fd_) {
        throw std::system_error{errno, std::system_category(), "timerfd_create"};
    }
}

void boot_timer::set(boot_clock::time_point when) noexcept {
    itimerspec next{};  // all zero: disarmed
    if (when != boot_clock::time_point::max()) {
        // Zero would disarm too, so the earliest moment is 1 ns.
        const auto since_boot = std::max(when.time_since_epoch(), std::chrono::nanoseconds{1});
        const auto whole = std::chrono::floor<std::chrono::seconds>(since_boot);
        next.it_value.tv_sec = static_cast<std::time_t>(whole.count());
        next.it_value.tv_nsec = static_cast<long>((since_boot - whole).count());
    }
    timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &next, nullptr);
}

}  // namespace monolock::cli
