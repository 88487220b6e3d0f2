#include "history/check.hpp"

#include <algorithm>
#include <utility>

namespace monolock::history {

std::string_view to_string(invariant what) noexcept {
    switch (what) {
        case invariant::possible_story:
            return "possible_story";
        case invariant::protocol_kept:
            return "protocol_kept";
        case invariant::exclusion:
            return "exclusion";
        case invariant::acts_within_belief:
            return "acts_within_belief";
        case invariant::no_early_grant:
            return "no_early_grant";
        case invariant::one_token:
            return "one_token";
        case invariant::tokens_per_lock:
            return "tokens_per_lock";
        case invariant::tokens_over_all:
            return "tokens_over_all";
        case invariant::told_for_cause:
            return "told_for_cause";
        case invariant::lost_for_cause:
            return "lost_for_cause";
        case invariant::fifo_as_seen:
            return "fifo_as_seen";
        case invariant::handover_bounded:
            return "handover_bounded";
        case invariant::silence_bounded:
            return "silence_bounded";
        case invariant::everyone_served:
            return "everyone_served";
        case invariant::nothing_lost_in_calm:
            return "nothing_lost_in_calm";
    }
    return "?";
}

void report::violated(invariant what, const event& first, const event& second, std::string how) {
    ++of_mutable(what).violations;
    keep({what, severity::unsafe, first, second, std::move(how)});
}

void report::late(invariant what, const event& first, const event& second, std::string how) {
    ++of_mutable(what).late;
    keep({what, severity::late, first, second, std::move(how)});
}

void report::keep(violation one) {
    const tally& counts = of(one.broken);
    if (counts.violations + counts.late <= kept_max) {
        kept_.push_back(std::move(one));
    }
}

std::uint64_t report::count(severity how_bad) const noexcept {
    std::uint64_t sum = 0;
    for (const tally& each : counts_) {
        sum += how_bad == severity::late ? each.late : each.violations;
    }
    return sum;
}

report check(std::span<const event> events, const settings& limits) {
    report made;
    const stories all{events};
    for (const story& one : all.all()) {
        ++made.claims;
        const bool lost = one.stop != nullptr && one.stop->what == kind::loss;
        made.grants += one.granted() ? 1U : 0U;
        made.losses += one.granted() && lost ? 1U : 0U;
    }
    check_stories(all, made);
    check_causes(all, limits, made);
    check_beliefs(all, made);
    check_leases(all, limits, made);
    check_tokens(all, made);
    check_order(all, made);
    check_handover(all, limits, made);
    check_liveness(all, limits, made);
    return made;
}

std::vector<const story*> in_order_of_grants(const std::vector<const story*>& lock) {
    std::vector<const story*> granted;
    std::copy_if(lock.begin(), lock.end(), std::back_inserter(granted),
                 [](const story* one) { return one->ever_believed(); });
    std::stable_sort(granted.begin(), granted.end(), [](const story* left, const story* right) {
        return left->grant->at < right->grant->at;
    });
    return granted;
}

namespace {

// At that moment, to the server: it has heard of its stop, or its lease has passed since.
bool known_to_be_gone(const stories& all, const story& who, instant at) {
    if (who.stop == nullptr || at < who.stop->at) {
        return false;
    }
    const bool expired = at - who.stop->at >= who.lease && !all.server_away(who.stop->at, at);
    return expired || all.stop_heard(who);
}

}  // namespace

bool unseen_owner_between(const stories& all, const std::vector<const story*>& lock,
                          const story& first, const story& next) {
    return std::any_of(lock.begin(), lock.end(), [&](const story* one) {
        const bool had_its_turn = one->waiting != nullptr && one->waiting->at < first.ask->at;
        const bool behind = next.waiting != nullptr && next.waiting->at < one->ask->at;
        return !one->ever_believed() && one->ask->at < next.grant->at && !behind && !had_its_turn &&
               !known_to_be_gone(all, *one, first.believed_until());
    });
}

bool tokens_comparable(const stories& all, const story& one, const story& other) {
    return !all.clock_set(std::min(one.ask->at, other.ask->at),
                          std::max(one.grant->at, other.grant->at));
}

// From its ask on: the word may have come before its client saw the grant.
bool earlier_owner_announced(const stories& all, const story& seen_first, const story& seen_next) {
    const instant until = seen_next.grant->at;
    const bool unknown = !tokens_comparable(all, seen_first, seen_next);
    const bool in_order = seen_first.grant->token < seen_next.grant->token;
    return ((in_order || unknown) && all.announced(seen_first, seen_first.ask->at, until)) ||
           ((!in_order || unknown) && all.announced(seen_next, seen_next.ask->at, until));
}

std::string milliseconds_text(instant span) {
    const std::int64_t microseconds = span.count() / 1000;
    const std::string rest = std::to_string(std::abs(microseconds % 1000));
    return (microseconds < 0 && microseconds > -1000 ? "-" : "") +
           std::to_string(microseconds / 1000) + "." + std::string(3 - rest.size(), '0') + rest +
           " ms";
}

}  // namespace monolock::history
