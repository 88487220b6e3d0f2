#include "server/token_counter.hpp"

#include <algorithm>

#include "server/wall_clock.hpp"

namespace monolock::server {

std::optional<core::fencing_token> token_counter::next(std::chrono::milliseconds lease) noexcept {
    if (!open_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    if (mandate_ != nullptr && !mandate_->in_force()) {
        // It may be extended in the next moment, and nothing else be a reason to try again.
        if (!mandate_missed_.exchange(true, std::memory_order_acq_rel)) {
            tell();
        }
        return std::nullopt;
    }
    if (lease.count() > lease_max_.load(std::memory_order_acquire)) {
        want_lease(lease);
        return std::nullopt;
    }
    const std::uint64_t now_ms = unix_milliseconds();
    const std::uint64_t ceiling = ceiling_.load(std::memory_order_acquire);
    std::uint64_t previous = last_.load(std::memory_order_relaxed);
    std::optional<core::fencing_token> token;
    do {
        token = core::next_token({previous}, now_ms, ceiling);
        if (!token) {
            if (!tokens_wanted_.exchange(true, std::memory_order_acq_rel)) {
                tell();
            }
            return std::nullopt;
        }
    } while (!last_.compare_exchange_weak(previous, token->value, std::memory_order_relaxed));
    return token;
}

void token_counter::limit(const grant_limits& to) noexcept {
    lease_max_.store(to.lease_max.count(), std::memory_order_release);
    ceiling_.store(to.ceiling, std::memory_order_release);
}

void token_counter::start_at(std::uint64_t first) noexcept {
    const std::uint64_t before = first == 0 ? 0 : first - 1;
    std::uint64_t previous = last();
    while (previous < before &&
           !last_.compare_exchange_weak(previous, before, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
}

void token_counter::want_lease(std::chrono::milliseconds lease) noexcept {
    auto most = lease_wanted_.load(std::memory_order_relaxed);
    while (most < lease.count()) {
        if (lease_wanted_.compare_exchange_weak(most, lease.count(), std::memory_order_acq_rel)) {
            tell();
            return;
        }
    }
}

token_counter::demand token_counter::take_demand() noexcept {
    return {
        .tokens = tokens_wanted_.exchange(false, std::memory_order_acq_rel),
        .mandate = mandate_missed_.exchange(false, std::memory_order_acq_rel),
        .lease = std::chrono::milliseconds{lease_wanted_.exchange(0, std::memory_order_acq_rel)}};
}

}  // namespace monolock::server
