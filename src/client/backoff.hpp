#pragma once

#include <chrono>

namespace monolock::detail {

inline constexpr std::chrono::milliseconds backoff_min{100};
inline constexpr std::chrono::milliseconds backoff_max{5000};

// How long with_lock_retry waits before the next attempt. Pure: the randomness is handed in.
class backoff {
public:
    // How the last attempt ended.
    struct attempt_end {
        bool admitted = false;       // the server had answered it
        bool shutting_down = false;  // with ERROR 0x01
    };

    // The delay before the next attempt: 100 ms doubling to 5 s, times 0.5 + uniform. After an
    // admitted session it starts anew. A first 0x01 costs no delay; a further one without an
    // admitted session in between does. `uniform` lies in [0, 1).
    [[nodiscard]] std::chrono::nanoseconds next(attempt_end last, double uniform) noexcept;

private:
    std::chrono::nanoseconds nominal_ = backoff_min;
    bool went_at_once_ = false;  // after a 0x01, and nothing was admitted since
};

}  // namespace monolock::detail
