#pragma once

#include <chrono>

namespace monolock::core {

// The server's time is the monotonic clock's. The core is handed its readings and takes none.
using time_point = std::chrono::steady_clock::time_point;
using std::chrono::nanoseconds;

}  // namespace monolock::core
