#pragma once

#include <algorithm>
#include <chrono>

#include "coordination/time.hpp"

namespace monolock::coordination {

// How long to wait before something that failed is tried again: an eighth of a TTL, doubling to a
// TTL.
class retry_pause {
public:
    explicit retry_pause(nanoseconds ttl) noexcept : ttl_{ttl}, next_{ttl / 8} {}

    [[nodiscard]] nanoseconds after_failure() noexcept {
        const nanoseconds now = next_;
        next_ = std::min(2 * next_, ttl_);
        return now;
    }
    void worked() noexcept { next_ = ttl_ / 8; }
    [[nodiscard]] bool at_rest() const noexcept { return next_ == ttl_ / 8; }

private:
    nanoseconds ttl_;
    nanoseconds next_;
};

}  // namespace monolock::coordination
