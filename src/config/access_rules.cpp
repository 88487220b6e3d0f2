#include "config/access_rules.hpp"

#include <functional>
#include <map>
#include <utility>

namespace monolock::config {

access_rules::access_rules(std::vector<access_rule> rules) : size_{rules.size()} {
    std::vector<std::string> identities;
    std::vector<std::vector<std::string>> locks;
    std::map<std::string, std::size_t, std::less<>> places;
    for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
        access_rule& from = rules[rule];
        const auto [place, is_new] = places.try_emplace(from.identity, identities.size());
        if (is_new) {
            identities.push_back(std::move(from.identity));
            locks.emplace_back();
            allowances_.emplace_back();
        }
        for (std::uint32_t pattern = 0; pattern < from.locks.size(); ++pattern) {
            locks[place->second].push_back(std::move(from.locks[pattern]));
            allowances_[place->second].origins.push_back({.rule = rule, .pattern = pattern});
        }
    }
    for (std::size_t place = 0; place < locks.size(); ++place) {
        allowances_[place].locks = glob_index{std::move(locks[place])};
    }
    identities_ = glob_index{std::move(identities)};
}

bool access_rules::permits(std::string_view identity, std::string_view lock) const {
    return identities_.any_match(identity, [this, lock](std::size_t place) {
        return allowances_[place].locks.any_match(lock, [](std::size_t) { return true; });
    });
}

std::optional<access_rules::permission> access_rules::find(std::string_view identity,
                                                           std::string_view lock) const {
    struct match {
        origin from;
        std::size_t identity = 0;  // places in the indexes
        std::size_t lock = 0;
    };
    std::optional<match> first;
    identities_.any_match(identity, [&](std::size_t place) {
        const allowance& here = allowances_[place];
        return here.locks.any_match(lock, [&](std::size_t pattern) {
            if (!first || here.origins[pattern] < first->from) {
                first = {.from = here.origins[pattern], .identity = place, .lock = pattern};
            }
            return false;  // an earlier one may come
        });
    });
    if (!first) {
        return std::nullopt;
    }
    return permission{.rule = first->from.rule,
                      .pattern = first->from.pattern,
                      .identity = identities_.patterns()[first->identity],
                      .lock = allowances_[first->identity].locks.patterns()[first->lock]};
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
