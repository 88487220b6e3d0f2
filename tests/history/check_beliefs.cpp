#include <algorithm>

#include "history/check.hpp"

namespace monolock::history {

void check_stories(const stories& all, report& into) {
    for (const contradiction& one : all.contradictions()) {
        into.violated(invariant::possible_story, *one.first, *one.second, one.how);
    }
    for (const story& one : all.all()) {
        into.checked(invariant::possible_story);
        into.checked(invariant::protocol_kept);
        if (one.stop != nullptr && one.stop->what == kind::loss &&
            (one.stop->why == reason::violation || one.stop->why == reason::refused)) {
            into.violated(invariant::protocol_kept, *one.ask, *one.stop,
                          "ended by " + std::string{to_string(one.stop->why)});
        }
    }
}

namespace {

// Those granted before and believing still, and the last one whatever it believes; the end of each
// is known.
class believers {
public:
    void add(const story& who) { who_.push_back(&who); }
    // Forgets those who do not believe at that moment.
    void advance_to(instant now) {
        if (who_.empty()) {
            return;
        }
        who_.erase(std::remove_if(who_.begin(), who_.end() - 1,
                                  [now](const story* one) { return one->believed_until() <= now; }),
                   who_.end() - 1);
    }
    [[nodiscard]] const std::vector<const story*>& who() const noexcept { return who_; }

private:
    std::vector<const story*> who_;
};

// Of what tells how long it believed, the event that says so.
const event& last_sign(const story& who) {
    if (who.last_act != nullptr &&
        who.last_act->at >= std::min(who.stopped_at(), who.confirmed_until)) {
        return *who.last_act;
    }
    return *who.grant;
}

void check_exclusion(const stories& all, const std::vector<const story*>& granted, report& into) {
    believers before;
    for (const story* const next : granted) {
        const instant now = next->grant->at;
        before.advance_to(now);
        for (const story* const one : before.who()) {
            if (earlier_owner_announced(all, *one, *next)) {
                into.passed_over(invariant::exclusion);
                continue;
            }
            into.checked(invariant::exclusion);
            if (one->believed_until() > now) {
                into.violated(invariant::exclusion, last_sign(*one), *next->grant,
                              "the first believed for another " +
                                  milliseconds_text(one->believed_until() - now));
            }
        }
        before.add(*next);
    }
}

void check_acts(const story& who, report& into) {
    if (!who.granted() || who.last_act == nullptr) {
        return;
    }
    into.checked(invariant::acts_within_belief);
    if (who.last_act->at >= who.confirmed_until) {
        into.violated(invariant::acts_within_belief, *who.grant, *who.last_act,
                      "acts " + milliseconds_text(who.last_act->at - who.confirmed_until) +
                          " past its deadline");
    } else if (who.last_act->at > who.stopped_at()) {
        into.violated(invariant::acts_within_belief, *who.stop, *who.last_act,
                      "acts after its end");
    }
}

}  // namespace

void check_beliefs(const stories& all, report& into) {
    for (const auto& [lock, claims] : all.by_lock()) {
        check_exclusion(all, in_order_of_grants(claims), into);
    }
    for (const story& one : all.all()) {
        if (one.granted() && !one.ever_believed()) {
            into.passed_over(invariant::exclusion);
        }
        check_acts(one, into);
    }
}

}  // namespace monolock::history
