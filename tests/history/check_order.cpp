#include <algorithm>

#include "history/check.hpp"

namespace monolock::history {

namespace {

enum class verdict : std::uint8_t { in_order, unknown, overtaken };

// `late` asked after `early` had seen WAITING, and was granted.
verdict judge(const stories& all, const story& early, const story& late) {
    // The server queued it after that; when it reads of it, the server may have forgotten it
    // already.
    const instant since = early.ask->at;
    const instant granted = late.grant->at;
    if (all.restarted(since, granted)) {
        return verdict::unknown;
    }
    if (early.granted()) {
        return early.grant->token < late.grant->token ? verdict::in_order : verdict::overtaken;
    }
    if (early.stopped_at() <= granted) {
        return verdict::in_order;
    }
    // It never was granted, and still believed to be in the queue. The server may have had reason
    // to forget it, of which it could not know yet.
    const surroundings& its = all.around(early.id.worker);
    const bool lost_soon = early.stop != nullptr && early.stop->what == kind::loss &&
                           early.stop->why == reason::silence &&
                           early.stop->at - granted < early.lease;
    if (lost_soon || any_overlaps(its.paused, since, granted) ||
        any_overlaps(its.silent, since, granted) || all.announced(early, since, granted)) {
        return verdict::unknown;
    }
    return verdict::overtaken;
}

}  // namespace

void check_order(const stories& all, report& into) {
    for (const auto& [lock, claims] : all.by_lock()) {
        for (const story* const early : claims) {
            if (early->waiting == nullptr) {
                continue;
            }
            // Who asked after it had its grant, or had left, cannot have overtaken it.
            const instant over = early->granted() ? early->grant->at : early->stopped_at();
            auto at = std::upper_bound(
                claims.begin(), claims.end(), early->waiting->at,
                [](instant when, const story* one) { return when < one->ask->at; });
            for (; at != claims.end() && (*at)->ask->at <= over; ++at) {
                const story& late = **at;
                if (!late.granted()) {
                    continue;
                }
                into.checked(invariant::fifo_as_seen);
                switch (judge(all, *early, late)) {
                    case verdict::in_order:
                        break;
                    case verdict::unknown:
                        into.passed_over(invariant::fifo_as_seen);
                        break;
                    case verdict::overtaken:
                        into.violated(invariant::fifo_as_seen, *early->waiting, *late.grant,
                                      "overtaken in the queue");
                        break;
                }
            }
        }
    }
}

}  // namespace monolock::history
