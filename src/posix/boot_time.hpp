#pragma once

#include <chrono>
#include <ctime>

#include "coordination/time.hpp"

namespace monolock::posix {

// A reading of the clock that runs through suspend (CLOCK_BOOTTIME), as `Clock` counts it.
template <class Clock>
[[nodiscard]] typename Clock::time_point read_boot_clock() noexcept {
    timespec reading{};
    // Cannot fail: the clock exists since Linux 2.6.39, and the pointer is good.
    static_cast<void>(::clock_gettime(CLOCK_BOOTTIME, &reading));
    return typename Clock::time_point{std::chrono::seconds{reading.tv_sec} +
                                      std::chrono::nanoseconds{reading.tv_nsec}};
}

// The same for what a server promises to another.
[[nodiscard]] inline coordination::time_point boot_now() noexcept {
    return read_boot_clock<coordination::boot_clock>();
}

}  // namespace monolock::posix
