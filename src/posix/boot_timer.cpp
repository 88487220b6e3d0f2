#include "posix/boot_timer.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>

namespace monolock::posix {

boot_timer::boot_timer() : fd_{timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)} {
    if (!fd_) {
        throw std::system_error{errno, std::system_category(), "timerfd_create"};
    }
}

void boot_timer::set(std::chrono::nanoseconds since_boot) noexcept {
    itimerspec next{};  // all zero: disarmed
    if (since_boot != std::chrono::nanoseconds::max()) {
        // Zero would disarm too, so the earliest moment is 1 ns.
        const auto moment = std::max(since_boot, std::chrono::nanoseconds{1});
        const auto whole = std::chrono::floor<std::chrono::seconds>(moment);
        next.it_value.tv_sec = static_cast<std::time_t>(whole.count());
        next.it_value.tv_nsec = static_cast<long>((moment - whole).count());
    }
    timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &next, nullptr);
}

}  // namespace monolock::posix
