#pragma once

#include <chrono>

#include <monolock/export.hpp>

namespace monolock {

/// @addtogroup holding
/// @{

/// The clock on which ownership is counted: monotonic, and it goes on while the machine is
/// suspended (CLOCK_BOOTTIME on Linux), so that a laptop which slept does not wake up believing
/// that it still owns a lock. Its epoch is the boot of the machine: a time point means nothing on
/// another machine.
struct boot_clock {
    using duration = std::chrono::nanoseconds;               ///< its unit
    using rep = duration::rep;                               ///< an integer
    using period = duration::period;                         ///< a nanosecond
    using time_point = std::chrono::time_point<boot_clock>;  ///< of this clock only
    static constexpr bool is_steady = true;                  ///< it never goes back

    /// The present moment. May be asked from any thread.
    [[nodiscard]] MONOLOCK_API static time_point now() noexcept;
};

/// @}

}  // namespace monolock
