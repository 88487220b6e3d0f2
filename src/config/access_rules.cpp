#include "config/access_rules.hpp"

#include <algorithm>
#include <utility>

namespace monolock::config {

access_rules::access_rules(std::vector<access_rule> rules) {
    std::vector<std::string> identities;
    identities.reserve(rules.size());
    locks_.reserve(rules.size());
    for (access_rule& each : rules) {
        identities.push_back(std::move(each.identity));
        locks_.emplace_back(std::move(each.locks));
    }
    identities_ = glob_index{std::move(identities)};
}

bool access_rules::permits(std::string_view identity, std::string_view lock) const {
    return identities_.any_match(identity, [this, lock](std::size_t rule) {
        return locks_[rule].any_match(lock, [](std::size_t) { return true; });
    });
}

std::optional<access_rules::permission> access_rules::find(std::string_view identity,
                                                           std::string_view lock) const {
    using place = std::pair<std::size_t, std::size_t>;  // rule, pattern
    std::optional<place> first;
    identities_.any_match(identity, [&](std::size_t rule) {
        return locks_[rule].any_match(lock, [&](std::size_t pattern) {
            const place here{rule, pattern};
            first = first ? std::min(*first, here) : here;
            return false;  // an earlier one may come
        });
    });
    if (!first) {
        return std::nullopt;
    }
    const auto [rule, pattern] = *first;
    return permission{.rule = rule,
                      .pattern = pattern,
                      .identity = identities_.patterns()[rule],
                      .lock = locks_[rule].patterns()[pattern]};
}

std::string describe(const access_rules& rules) {
    switch (rules.size()) {
        case 0:
            return "no rules, all claims are denied";
        case 1:
            return "1 rule";
        default:
            return std::to_string(rules.size()) + " rules";
    }
}

}  // namespace monolock::config
