#include "simulation/access.hpp"

#include "simulation/rules.hpp"

namespace monolock::simulation {

config::access_rules access_table::rules() const {
    std::vector<config::access_rule> rules;
    const auto locks = static_cast<int>(locks_);
    const auto identities = static_cast<int>(permitted_.size() / locks_);
    for (int identity = 0; identity < identities; ++identity) {
        config::access_rule rule{.identity = identity_name_of(identity), .locks = {}};
        for (int lock = 0; lock < locks; ++lock) {
            if (permits(identity, lock)) {
                rule.locks.push_back(lock_name_of(lock));
            }
        }
        if (!rule.locks.empty()) {
            rules.push_back(std::move(rule));
        }
    }
    return config::access_rules{std::move(rules)};
}

}  // namespace monolock::simulation
