#pragma once

#include <array>
#include <cstdint>

#include "server/shard.hpp"

namespace monolock::server::admin {

// What goes on in all shards together, from their counters: no shard is asked.
struct activity {
    std::uint64_t locks = 0;  // with an owner
    std::uint64_t sessions = 0;
    std::uint64_t waiters = 0;

    // Since the start.
    std::uint64_t grants = 0;
    std::uint64_t handovers = 0;  // grants to a waiter, at the end of an owner
    std::uint64_t releases = 0;
    std::uint64_t heartbeats = 0;
    std::uint64_t connections = 0;
    std::uint64_t client_errors = 0;  // ERRORs that say that a client did something wrong
    std::array<std::uint64_t, end_reasons.size()> ends{};  // the releases, in that order
};

[[nodiscard]] activity activity_of(const shard_surroundings& around);

}  // namespace monolock::server::admin
