#include <algorithm>

#include "history/check.hpp"

namespace monolock::history {

namespace {

// What the lease has left when the client's deadline is reached: 0.2 of it.
instant margin_of(const story& owner, const settings& limits) {
    return limits.clocks_drift ? instant{0} : owner.lease - believed_of(owner.lease);
}

// What is confirmed was sent before it was noted, and is worth 0.8 x lease from its sending.
void check_belief(const story& who, const settings& limits, report& into) {
    if (limits.clocks_drift) {
        return;
    }
    into.checked(invariant::acts_within_belief);
    if (who.believes_for() > believed_of(who.lease)) {
        into.violated(invariant::acts_within_belief, *who.ask, *who.furthest,
                      "believes for another " + milliseconds_text(who.believes_for()) +
                          ", which is more than 0.8 of its lease");
    }
}

// The client of the owner before has not closed, as far as the server can know: it was given up.
bool given_up(const stories& all, const story& owner, instant next_grant) {
    if (owner.stopped_at() > next_grant) {
        return true;
    }
    const window* const unheard = that_contains(all.around(owner.id.worker).silent, owner.stop->at);
    return unheard != nullptr && next_grant < unheard->until;
}

void check_not_early(const stories& all, const settings& limits, const story& owner,
                     const story& next, report& into) {
    if (earlier_owner_announced(all, owner, next)) {
        into.passed_over(invariant::no_early_grant);
        return;
    }
    into.checked(invariant::no_early_grant);
    const instant earliest = owner.confirmed_until + margin_of(owner, limits);
    if (next.grant->at < earliest) {
        into.violated(
            invariant::no_early_grant, *owner.grant, *next.grant,
            "the lease of the first had another " + milliseconds_text(earliest - next.grant->at));
    }
}

// The silence that the owner fell into and that lasted until the next grant.
const window* silence_of(const stories& all, const story& owner, const story& next) {
    const windows& silent = all.around(owner.id.worker).silent;
    const auto found = std::find_if(silent.begin(), silent.end(), [&](const window& one) {
        return one.from >= owner.grant->at && one.from <= next.grant->at &&
               one.until >= next.grant->at;
    });
    const bool owned_until_then = found != silent.end() && owner.stopped_at() >= found->from;
    return owned_until_then ? &*found : nullptr;
}

// A client sends one heartbeat at a time, and never sooner after the one before than that
// (docs/protocol.md, `min(base, max(base - 2 x rtt, 100 ms))`).
instant heartbeat_interval_min(instant lease) {
    return std::min<instant>(lease / 4, std::chrono::milliseconds{100});
}

// The latest moment at which the server can have heard the owner that fell silent then. It had
// heard what was confirmed when that was noted. Whether more was sent, and not confirmed before the
// silence, nobody notes; if it cannot have been, the silence counts from that note.
instant heard_at_the_latest(const story& owner, const settings& limits, instant silent) {
    const instant sent = owner.confirmed_until - believed_of(owner.lease);
    const bool may_have_sent_again =
        limits.clocks_drift || silent >= sent + heartbeat_interval_min(owner.lease);
    return may_have_sent_again ? silent : std::min(silent, owner.confirmed->at);
}

void check_not_late(const stories& all, const settings& limits,
                    const std::vector<const story*>& lock, const story& owner, const story& next,
                    report& into) {
    const window* const silence = silence_of(all, owner, next);
    if (silence == nullptr || limits.silence_slack == instant{0}) {
        return;
    }
    const instant heard = heard_at_the_latest(owner, limits, silence->from);
    const instant over = heard + owner.lease;
    const surroundings& its = all.around(next.id.worker);
    if (!its.near || next.waiting == nullptr || next.waiting->at > over ||
        any_overlaps(its.paused, heard, next.grant->at) || all.server_away(heard, next.grant->at) ||
        all.announced(owner, heard, next.grant->at) ||
        unseen_owner_between(all, lock, owner, next)) {
        into.passed_over(invariant::silence_bounded);
        return;
    }
    into.checked(invariant::silence_bounded);
    // Below zero it is not early: the last sign of life may be older than is known.
    const instant late = std::max(next.grant->at - over, instant{0});
    into.silence_max = std::max(into.silence_max.value_or(late), late);
    if (late > limits.silence_slack) {
        into.late(invariant::silence_bounded, *owner.grant, *next.grant,
                  milliseconds_text(late) + " past the lease of the first, or more");
    }
}

}  // namespace

void check_leases(const stories& all, const settings& limits, report& into) {
    for (const auto& [lock, claims] : all.by_lock()) {
        const auto granted = in_order_of_grants(claims);
        for (const story* const each : granted) {
            check_belief(*each, limits, into);
        }
        for (std::size_t at = 1; at < granted.size(); ++at) {
            const story& owner = *granted[at - 1];
            const story& next = *granted[at];
            if (given_up(all, owner, next.grant->at)) {
                check_not_early(all, limits, owner, next, into);
                check_not_late(all, limits, claims, owner, next, into);
            }
        }
    }
}

void check_handover(const stories& all, const settings& limits, report& into) {
    if (limits.handover_max == instant{0}) {
        return;
    }
    for (const auto& [lock, claims] : all.by_lock()) {
        const auto granted = in_order_of_grants(claims);
        for (std::size_t at = 1; at < granted.size(); ++at) {
            const story& owner = *granted[at - 1];
            const story& next = *granted[at];
            const instant closed = owner.stopped_at();
            if (closed > next.grant->at || next.waiting == nullptr || next.waiting->at > closed) {
                continue;
            }
            const surroundings& its = all.around(next.id.worker);
            if (!its.near || !all.around(owner.id.worker).near || !all.stop_heard(owner) ||
                any_overlaps(its.paused, closed, next.grant->at) ||
                all.server_away(closed, next.grant->at) ||
                unseen_owner_between(all, claims, owner, next)) {
                into.passed_over(invariant::handover_bounded);
                continue;
            }
            into.checked(invariant::handover_bounded);
            const instant at_last = owner.closed != nullptr ? owner.closed->at : closed;
            const instant took = std::max(next.grant->at - at_last, instant{0});
            into.handover_max = std::max(into.handover_max.value_or(took), took);
            if (took > limits.handover_max) {
                into.late(invariant::handover_bounded, *owner.stop, *next.grant,
                          "took " + milliseconds_text(took));
            }
        }
    }
}

}  // namespace monolock::history
