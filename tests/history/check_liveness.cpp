#include <algorithm>

#include "history/check.hpp"

namespace monolock::history {

namespace {

void check_served(const story& who, instant calm, instant finish, const settings& limits,
                  report& into) {
    const instant since = std::max(who.ask->at, calm);
    const bool over_before = who.stopped_at() < calm || (who.granted() && who.grant->at < calm);
    const bool by_itself = !who.granted() && who.stop != nullptr;  // left, or lost: below
    if (over_before || by_itself || limits.served_within == instant{0}) {
        return;
    }
    const instant took = (who.granted() ? who.grant->at : finish) - since;
    if (!who.granted() && took < limits.served_within) {
        into.passed_over(invariant::everyone_served);  // nobody waited for it any more
        return;
    }
    into.checked(invariant::everyone_served);
    if (!who.granted()) {
        into.violated(invariant::everyone_served, *who.ask, event{.at = finish},
                      "not served for " + milliseconds_text(took));
    } else if (took > limits.served_within) {
        into.late(invariant::everyone_served, *who.ask, *who.grant,
                  "served after " + milliseconds_text(took));
    }
}

void check_not_lost(const story& who, instant calm, report& into) {
    if (who.ask->at < calm) {
        return;
    }
    into.checked(invariant::nothing_lost_in_calm);
    if (who.stop == nullptr || who.stop->what != kind::loss) {
        return;
    }
    const std::string how = "lost by " + std::string{to_string(who.stop->why)};
    if (who.stop->why == reason::silence) {
        into.late(invariant::nothing_lost_in_calm, *who.ask, *who.stop, how);
    } else {
        into.violated(invariant::nothing_lost_in_calm, *who.ask, *who.stop, how);
    }
}

}  // namespace

void check_liveness(const stories& all, const settings& limits, report& into) {
    if (!all.calm()) {
        return;
    }
    const instant calm = *all.calm();
    const instant finish = all.finish().value_or(calm);
    std::map<std::uint32_t, const story*> served;  // by worker: a claim of it
    for (const story& one : all.all()) {
        if (all.around(one.id.worker).killed != nullptr) {
            continue;
        }
        check_served(one, calm, finish, limits, into);
        check_not_lost(one, calm, into);
        const story*& whose = served[one.id.worker];
        if (whose == nullptr || (one.granted() && one.grant->at >= calm)) {
            whose = &one;
        }
    }
    for (const auto& [worker, one] : served) {
        into.checked(invariant::everyone_served);
        if (!one->granted() || one->grant->at < calm) {
            into.violated(invariant::everyone_served, *one->ask, event{.at = finish},
                          "the worker had no grant in calm");
        }
    }
}

}  // namespace monolock::history
