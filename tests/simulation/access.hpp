#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "config/access_rules.hpp"
#include "simulation/random.hpp"

namespace monolock::simulation {

// Who may claim which lock, written down in the plainest way: the rules judge by it, the server by
// the access rules that say the same.
class access_table {
public:
    // Everybody may claim every lock.
    access_table(int identities, int locks)
        : locks_{static_cast<std::size_t>(locks)},
          permitted_(static_cast<std::size_t>(identities) * locks_, true) {}

    void draw(random_source& random, per_million permitted) {
        for (auto&& each : permitted_) {
            each = random.chance(permitted);
        }
    }

    // A lock that no client means, but garbage can name, is permitted to nobody.
    [[nodiscard]] bool permits(int identity, int lock) const {
        const auto column = static_cast<std::size_t>(lock);
        return column < locks_ && permitted_[static_cast<std::size_t>(identity) * locks_ + column];
    }

    [[nodiscard]] config::access_rules rules() const;

private:
    std::size_t locks_;
    std::vector<bool> permitted_;
};

// What a certificate says of the client that has it.
[[nodiscard]] inline std::string identity_name_of(int identity) {
    return "client " + std::to_string(identity);
}

// One state of the file, as a shard adopts it; see src/server/access_policy.hpp.
struct access_file {
    std::shared_ptr<const config::access_rules> rules;  // null: everybody may claim every lock
    unsigned generation = 0;

    [[nodiscard]] bool permits(int identity, std::string_view lock) const {
        return rules == nullptr || rules->permits(identity_name_of(identity), lock);
    }
};

}  // namespace monolock::simulation
