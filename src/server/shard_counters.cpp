#include "server/shard_counters.hpp"

#include <algorithm>
#include <iterator>

#include "core/assert.hpp"

namespace monolock::server {

namespace {

static_assert(static_cast<std::size_t>(end_reasons.back()) + 1 == end_reasons.size());

}  // namespace

void shard_counters::take(const core::fact& what, std::size_t sessions,
                          core::clock_port& clock) noexcept {
    if (std::holds_alternative<core::acknowledged>(what)) {
        heartbeats_.add();
        return;
    }
    sessions_.set(sessions);
    if (sessions > sessions_peak_.load(std::memory_order_relaxed)) {
        sessions_peak_.store(sessions, std::memory_order_relaxed);
    }
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        locks_held_.set(locks_held_.value() + 1);
        waits_.add(grant->waited);
        if (grant->waited > core::nanoseconds{0}) {
            handovers_.add(clock.now() - grant->who->since());
        }
    } else if (const auto* const end = std::get_if<core::ended>(&what);
               end != nullptr && end->was == core::session_state::owning) {
        locks_held_.set(locks_held_.value() - 1);
        holds_.add(end->lasted);
        releases_[static_cast<std::size_t>(end->why)].add();
    }
}

void shard_counters::error_due(protocol::error_code code) noexcept {
    const auto* const known = std::find(error_codes.begin(), error_codes.end(), code);
    MONOLOCK_ASSERT(known != error_codes.end());  // the server sends no other
    errors_[static_cast<std::size_t>(std::distance(error_codes.begin(), known))].add();
}

}  // namespace monolock::server
