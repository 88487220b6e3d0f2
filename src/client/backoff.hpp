#pragma once

#include <chrono>

namespace monolock::detail {

inline constexpr std::chrono::milliseconds backoff_min{100};
inline constexpr std::chrono::milliseconds backoff_max{5000};
// With several addresses another server may open at any moment, and the client is to be there soon:
// docs/decisions/0022-client-address-lists.md.
inline constexpr std::chrono::milliseconds backoff_max_of_list{500};

// How long with_lock_retry waits before the next attempt. Pure: the randomness is handed in.
class backoff {
public:
    explicit backoff(std::chrono::milliseconds most = backoff_max) noexcept : most_{most} {}

    // How the last attempt ended.
    struct attempt_end {
        bool admitted = false;       // the server had answered it
        bool shutting_down = false;  // with ERROR 0x01
    };

    // The delay before the next attempt: 100 ms doubling to the most, times 0.5 + uniform. After an
    // admitted session it starts anew. A first 0x01 costs no delay; a further one without an
    // admitted session in between does. `uniform` lies in [0, 1).
    [[nodiscard]] std::chrono::nanoseconds next(attempt_end last, double uniform) noexcept;

private:
    std::chrono::milliseconds most_;
    std::chrono::nanoseconds nominal_ = backoff_min;
    bool went_at_once_ = false;  // after a 0x01, and nothing was admitted since
};

}  // namespace monolock::detail
