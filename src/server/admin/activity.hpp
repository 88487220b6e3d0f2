#pragma once

#include <cstdint>

#include "server/shard.hpp"

namespace monolock::server::admin {

// What goes on in all shards together, from their counters: no shard is asked.
struct activity {
    std::uint64_t locks = 0;  // with an owner
    std::uint64_t sessions = 0;
    std::uint64_t waiters = 0;
    std::uint64_t grants = 0;      // since the start
    std::uint64_t releases = 0;    // since the start
    std::uint64_t heartbeats = 0;  // since the start
};

[[nodiscard]] activity activity_of(const shard_surroundings& around);

}  // namespace monolock::server::admin
