#pragma once

#include <chrono>
#include <string>

#include "load/latencies.hpp"

namespace monolock::bench {

// What a timed mode found out.
struct timed_result {
    std::chrono::nanoseconds elapsed{0};
    std::chrono::nanoseconds server_cpu{0};
    latencies latency;  // one entry for each operation
};

[[nodiscard]] double microseconds(std::chrono::nanoseconds time) noexcept;

// The result as one JSON object on a line: the figures that bench/run knows by name, and the
// latencies as a histogram of [nanoseconds, count]. `negotiated` is what TLS agreed on. Throws
// measurement_error if there was no operation. Reorders the latencies.
[[nodiscard]] std::string to_json(timed_result& result, const std::string& negotiated);

}  // namespace monolock::bench
