#include "protocol/heartbeat_schedule.hpp"

#include <algorithm>

namespace monolock::protocol {

nanoseconds base_interval(std::chrono::milliseconds lease) noexcept {
    return nanoseconds{lease} / 4;
}

nanoseconds client_timeout(std::chrono::milliseconds lease) noexcept {
    return nanoseconds{lease} / 5 * 4;
}

nanoseconds heartbeat_interval(std::chrono::milliseconds lease, nanoseconds smoothed_rtt) noexcept {
    const nanoseconds base = base_interval(lease);
    const nanoseconds corrected = base - 2 * smoothed_rtt;
    return std::min(base, std::max<nanoseconds>(corrected, heartbeat_interval_floor));
}

void rtt_estimate::add(nanoseconds sample) noexcept {
    if (!smoothed_) {
        smoothed_ = sample;
        return;
    }
    *smoothed_ += (sample - *smoothed_) / 5;
}

}  // namespace monolock::protocol
