#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/lock_table.hpp"
#include "server/peer_address.hpp"

namespace monolock::server::admin {

// What an operator is shown of a claim and of a lock: copies, made on the shard's thread, that may
// go anywhere.

struct claim_view {
    core::session_id id;
    std::string identity;  // empty without mutual TLS
    peer_address peer;
    core::time_point since;  // the grant; of a waiter, the ACQUIRE
    core::time_point last_seen;
    std::chrono::milliseconds lease{0};
    core::fencing_token token;  // zero: a waiter
};

struct lock_view {
    std::string name;
    core::time_point taken_at;  // a clock reading that is not before anything else in here
    std::optional<claim_view> holder;
    std::vector<claim_view> waiters;  // in the order of the queue; perhaps only the first ones
    std::size_t waiters_total = 0;
};

// Of a session of a shard.
[[nodiscard]] claim_view view_of(const core::session& who);

// With the first waiters_max waiters.
[[nodiscard]] lock_view view_of(const core::named_lock& lock, std::size_t waiters_max,
                                core::time_point now);

}  // namespace monolock::server::admin
