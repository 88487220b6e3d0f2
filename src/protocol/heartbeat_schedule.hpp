#pragma once

#include <chrono>
#include <optional>

namespace monolock::protocol {

using std::chrono::nanoseconds;

// When a client beats and when it gives up, from its lease alone (docs/protocol.md, "The client's
// duties"). All of it is arithmetic on durations; no clock is read.

inline constexpr std::chrono::milliseconds lease_min{1};
inline constexpr std::chrono::milliseconds lease_max{0xFFFFFFFF};

// The floor that the round-trip correction does not go below, unless lease / 4 is smaller itself.
inline constexpr std::chrono::milliseconds heartbeat_interval_floor{100};

// lease / 4: the longest time from one send to the next.
[[nodiscard]] nanoseconds base_interval(std::chrono::milliseconds lease) noexcept;

// 0.8 × lease: how long after the send time of the last answered message ownership is confirmed.
[[nodiscard]] nanoseconds client_timeout(std::chrono::milliseconds lease) noexcept;

// min(base, max(base − 2 × smoothed_rtt, 100 ms)), from send to send.
[[nodiscard]] nanoseconds heartbeat_interval(std::chrono::milliseconds lease,
                                             nanoseconds smoothed_rtt) noexcept;

// Exponentially weighted mean of round trips, alpha 0.2; the first sample is taken as it is.
class rtt_estimate {
public:
    void add(nanoseconds sample) noexcept;

    // Zero before the first sample.
    [[nodiscard]] nanoseconds smoothed() const noexcept {
        return smoothed_.value_or(nanoseconds{0});
    }

private:
    std::optional<nanoseconds> smoothed_;
};

}  // namespace monolock::protocol
