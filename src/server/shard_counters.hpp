#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

#include "core/session_port.hpp"
#include "protocol/error_code.hpp"
#include "telemetry/counter.hpp"

namespace monolock::server {

// How long people queue for a lock and keep it: from the quick job to the one that takes a week.
inline constexpr telemetry::bucket_bounds<12> claim_bounds{
    std::chrono::milliseconds{1}, std::chrono::milliseconds{10}, std::chrono::milliseconds{100},
    std::chrono::seconds{1},      std::chrono::seconds{10},      std::chrono::minutes{1},
    std::chrono::minutes{5},      std::chrono::minutes{15},      std::chrono::hours{1},
    std::chrono::hours{6},        std::chrono::hours{24},        std::chrono::hours{168}};

// How quick the server itself is.
inline constexpr telemetry::bucket_bounds<12> handover_bounds{
    std::chrono::microseconds{10},  std::chrono::microseconds{25},  std::chrono::microseconds{50},
    std::chrono::microseconds{100}, std::chrono::microseconds{250}, std::chrono::microseconds{500},
    std::chrono::milliseconds{1},   std::chrono::milliseconds{5},   std::chrono::milliseconds{25},
    std::chrono::milliseconds{100}, std::chrono::milliseconds{500}, std::chrono::seconds{2}};

// The codes that the server can send, each with a counter from the start.
inline constexpr std::array error_codes{
    protocol::error_code::server_shutting_down, protocol::error_code::closed_by_administrator,
    protocol::error_code::unsupported_version,  protocol::error_code::first_message_not_acquire,
    protocol::error_code::duplicate_acquire,    protocol::error_code::unknown_message_type,
    protocol::error_code::empty_lock_name,      protocol::error_code::lock_name_too_long,
    protocol::error_code::lock_name_not_utf8,   protocol::error_code::lease_not_positive,
    protocol::error_code::not_authorized};

inline constexpr std::array end_reasons{core::end_reason::graceful, core::end_reason::expired,
                                        core::end_reason::io_timeout, core::end_reason::force};

// What one shard counts, of its own and of connections that it accepted for others. Its thread
// writes, the control loop reads.
class shard_counters {
public:
    using claim_times = telemetry::histogram<claim_bounds.size()>;
    using handover_times = telemetry::histogram<handover_bounds.size()>;

    // For the shard's observer_port::on_fact; `sessions` is how many its table holds now. The clock
    // is read for a promotion and for nothing else.
    void take(const core::fact& what, std::size_t sessions, core::clock_port& clock) noexcept;

    // An ERROR is due to somebody.
    void error_due(protocol::error_code code) noexcept;

    void connection_accepted() noexcept { connections_accepted_.add(); }

    [[nodiscard]] std::uint64_t connections_accepted() const noexcept {
        return connections_accepted_.value();
    }
    [[nodiscard]] std::uint64_t heartbeats() const noexcept { return heartbeats_.value(); }
    [[nodiscard]] std::uint64_t releases(core::end_reason why) const noexcept {
        return releases_[static_cast<std::size_t>(why)].value();
    }
    // In the order of error_codes.
    [[nodiscard]] std::uint64_t errors(std::size_t index) const noexcept {
        return errors_[index].value();
    }
    [[nodiscard]] std::uint64_t sessions() const noexcept { return sessions_.value(); }
    // The most at one time since this was last asked. For one reader alone. A maximum that is
    // reached in the moment of asking may be said again the next time.
    [[nodiscard]] std::uint64_t take_sessions_peak() noexcept {
        return sessions_peak_.exchange(0, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t locks_held() const noexcept { return locks_held_.value(); }

    // Of every grant, that which waited for nobody included.
    [[nodiscard]] const claim_times& waits() const noexcept { return waits_; }
    // Of every end of an ownership.
    [[nodiscard]] const claim_times& holds() const noexcept { return holds_; }
    // Of every promotion: from the moment at which the old owner's end was known to that at which
    // the new owner's ACQUIRED was with the kernel.
    [[nodiscard]] const handover_times& handovers() const noexcept { return handovers_; }

private:
    telemetry::counter connections_accepted_;
    telemetry::counter heartbeats_;
    std::array<telemetry::counter, end_reasons.size()> releases_;
    std::array<telemetry::counter, error_codes.size()> errors_;
    telemetry::gauge sessions_;
    std::atomic<std::uint64_t> sessions_peak_{0};
    telemetry::gauge locks_held_;
    claim_times waits_{claim_bounds};
    claim_times holds_{claim_bounds};
    handover_times handovers_{handover_bounds};
};

}  // namespace monolock::server
