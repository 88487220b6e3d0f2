#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "config/access_rules.hpp"

namespace monolock::server {

// The access rules in force, as one shard knows them. All shards get each generation, in order, but
// not at the same moment.
struct access_policy {
    std::shared_ptr<const config::access_rules> rules;  // null: everybody may claim every lock
    std::uint64_t generation = 0;

    [[nodiscard]] bool permits(std::string_view identity, std::string_view lock) const {
        return rules == nullptr || rules->permits(identity, lock);
    }
};

}  // namespace monolock::server
