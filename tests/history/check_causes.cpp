#include <algorithm>

#include "history/check.hpp"

namespace monolock::history {

namespace {

bool told_for_cause(const stories& all, const story& who) {
    const instant from = who.ask->at;
    const instant until = who.stop->at;
    return who.stop->why == reason::shutdown ? all.server_ending(from, until)
                                             : all.forced(who.lock, from, until);
}

void check_told(const stories& all, const story& who, report& into) {
    into.checked(invariant::told_for_cause);
    if (!told_for_cause(all, who)) {
        into.violated(invariant::told_for_cause, *who.ask, *who.stop,
                      "told of " + std::string{to_string(who.stop->why)} + ", which was not");
    }
}

// When the server heard of it last, or before: its client has this answered, or as much as asked.
instant heard_at(const story& who) {
    return who.granted() ? who.confirmed_until - believed_of(who.lease) : who.ask->at;
}

// Whether its connection may have been broken by somebody else than its client and the server: from
// its ask on, for what happened before the grant may be read after it.
bool may_have_been_broken(const stories& all, const story& who) {
    return all.announced(who, who.ask->at, who.stop->at) ||
           all.server_ending(who.ask->at, who.stop->at);
}

// Whether one side of it stood still or was cut off between the two times.
bool may_have_been_silent(const stories& all, const story& who, instant from, instant until) {
    const surroundings& its = all.around(who.id.worker);
    return any_overlaps(its.paused, from, until) || any_overlaps(its.silent, from, until) ||
           all.server_away(from, until);
}

// Silence takes time: the client knows of it at its deadline and not before, the server may close
// for it once the whole lease has passed. What comes sooner was done to the connection by somebody.
void check_lost(const stories& all, const settings& limits, const story& who, report& into) {
    const bool by_silence = who.stop->why == reason::silence;
    const instant heard = heard_at(who);
    const instant since_heard = who.stop->at - heard;
    const event& begun = who.granted() ? *who.grant : *who.ask;
    const std::string how = "lost by " + std::string{to_string(who.stop->why)} + ", ";
    const instant earliest = by_silence || limits.clocks_drift ? believed_of(who.lease) : who.lease;
    if (since_heard < earliest) {
        into.checked(invariant::lost_for_cause);
        if (by_silence || !may_have_been_broken(all, who)) {
            into.violated(invariant::lost_for_cause, begun, *who.stop,
                          how + milliseconds_text(since_heard) + " after it was heard");
        }
        return;
    }
    if (!all.around(who.id.worker).near) {
        into.passed_over(invariant::lost_for_cause);  // its network is reason enough
        return;
    }
    into.checked(invariant::lost_for_cause);
    if (!may_have_been_silent(all, who, heard, who.stop->at) && !may_have_been_broken(all, who)) {
        into.late(invariant::lost_for_cause, begun, *who.stop, how + "and nobody was silent");
    }
}

}  // namespace

void check_causes(const stories& all, const settings& limits, report& into) {
    for (const story& one : all.all()) {
        if (one.stop == nullptr || one.stop->what != kind::loss) {
            continue;
        }
        const reason why = one.stop->why;
        if (limits.causes_noted && (why == reason::shutdown || why == reason::administrator)) {
            check_told(all, one, into);
        }
        const bool admitted = one.waiting != nullptr || one.granted();
        if (limits.faults_noted && admitted && (why == reason::silence || why == reason::closed)) {
            check_lost(all, limits, one, into);
        }
    }
}

}  // namespace monolock::history
