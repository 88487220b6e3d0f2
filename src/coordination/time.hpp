#pragma once

#include <chrono>

namespace monolock::coordination {

// The clock that runs through suspend (CLOCK_BOOTTIME on Linux): what a server promises to another
// machine must not outlast a sleep of its own. A type of its own, so that no reading of the shards'
// monotonic clock is taken for one. It has no now(): pure code is handed its time.
struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;
};

using time_point = boot_clock::time_point;
using std::chrono::nanoseconds;

}  // namespace monolock::coordination
