#include <algorithm>
#include <map>

#include "history/check.hpp"

namespace monolock::history {

namespace {

void check_unique(const stories& all, report& into) {
    std::map<std::uint64_t, const story*> owner_of;
    for (const story& one : all.all()) {
        if (!one.granted()) {
            continue;
        }
        if (one.grant->token == 0) {
            into.checked(invariant::one_token);
            into.violated(invariant::one_token, *one.ask, *one.grant, "a token of zero");
            continue;
        }
        const auto [at, is_new] = owner_of.try_emplace(one.grant->token, &one);
        if (!is_new && !tokens_comparable(all, *at->second, one)) {
            into.passed_over(invariant::one_token);
            continue;
        }
        into.checked(invariant::one_token);
        if (!is_new) {
            into.violated(invariant::one_token, *at->second->grant, *one.grant,
                          "the token belongs to another claim");
        }
    }
}

void check_lock(const stories& all, const std::vector<const story*>& granted, report& into) {
    for (std::size_t at = 1; at < granted.size(); ++at) {
        const story& before = *granted[at - 1];
        const story& after = *granted[at];
        if (!tokens_comparable(all, before, after) || earlier_owner_announced(all, before, after)) {
            into.passed_over(invariant::tokens_per_lock);
            continue;
        }
        into.checked(invariant::tokens_per_lock);
        if (after.grant->token <= before.grant->token) {
            into.violated(invariant::tokens_per_lock, *before.grant, *after.grant,
                          "the token does not rise");
        }
    }
}

// Before this moment the server cannot have granted it.
struct possible {
    instant from;
    const story* who;
};

std::vector<possible> grants_possible(const stories& all) {
    std::vector<possible> found;
    for (const auto& [lock, claims] : all.by_lock()) {
        const story* owner = nullptr;
        for (const story* const next : in_order_of_grants(claims)) {
            instant from = next->ask->at;
            if (owner != nullptr && owner->grant->token < next->grant->token &&
                !earlier_owner_announced(all, *owner, *next)) {
                from = std::max(from, std::min(owner->believed_until(), next->grant->at));
            }
            found.push_back({from, next});
            owner = next;
        }
    }
    std::sort(found.begin(), found.end(),
              [](const possible& left, const possible& right) { return left.from < right.from; });
    return found;
}

void check_over_all(const stories& all, report& into) {
    std::vector<const story*> seen;
    for (const story& one : all.all()) {
        if (one.granted()) {
            seen.push_back(&one);
        }
    }
    std::sort(seen.begin(), seen.end(), [](const story* left, const story* right) {
        return left->grant->at < right->grant->at;
    });
    const story* largest = nullptr;
    std::size_t at = 0;
    for (const possible& next : grants_possible(all)) {
        for (; at < seen.size() && seen[at]->grant->at < next.from; ++at) {
            const bool anew = largest != nullptr && !tokens_comparable(all, *largest, *seen[at]);
            if (largest == nullptr || anew || seen[at]->grant->token > largest->grant->token) {
                largest = seen[at];
            }
        }
        if (largest == nullptr) {
            continue;
        }
        if (!tokens_comparable(all, *largest, *next.who)) {
            into.passed_over(invariant::tokens_over_all);
            continue;
        }
        into.checked(invariant::tokens_over_all);
        if (next.who->grant->token <= largest->grant->token && next.who != largest) {
            into.violated(invariant::tokens_over_all, *largest->grant, *next.who->grant,
                          "a smaller token, though granted later");
        }
    }
}

}  // namespace

void check_tokens(const stories& all, report& into) {
    check_unique(all, into);
    for (const auto& [lock, claims] : all.by_lock()) {
        check_lock(all, in_order_of_grants(claims), into);
    }
    check_over_all(all, into);
}

}  // namespace monolock::history
