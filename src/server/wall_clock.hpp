#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace monolock::server {

// The wall clock, as tokens are made of it. One before 1970 is a clock that knows nothing: zero,
// and the tokens' counter alone goes on.
[[nodiscard]] inline std::uint64_t unix_milliseconds() noexcept {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count()));
}

}  // namespace monolock::server
