#include "monolock/boot_clock.hpp"

#include <ctime>

namespace monolock {

boot_clock::time_point boot_clock::now() noexcept {
    timespec reading{};
    // Cannot fail: the clock exists since Linux 2.6.39, and the pointer is good.
    static_cast<void>(::clock_gettime(CLOCK_BOOTTIME, &reading));
    return time_point{std::chrono::seconds{reading.tv_sec} +
                      std::chrono::nanoseconds{reading.tv_nsec}};
}

}  // namespace monolock
