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
    const instant stopped = early.stopped_at();
    if (all.restarted(since, granted)) {
        return verdict::unknown;
    }
    if (early.granted()) {
        return early.grant->token < late.grant->token ? verdict::in_order : verdict::overtaken;
    }
    // It never was granted. The server may have had reason to forget it, of which it could not know
    // yet while it believed to be in the queue.
    const instant queued = std::min(stopped, granted);
    const surroundings& its = all.around(early.id.worker);
    const bool lost_soon = stopped > granted && early.stop != nullptr &&
                           early.stop->what == kind::loss && early.stop->why == reason::silence &&
                           stopped - granted < early.lease;
    if (lost_soon || any_overlaps(its.paused, since, queued) ||
        any_overlaps(its.silent, since, queued) || all.announced(early, since, queued)) {
        return verdict::unknown;
    }
    return stopped <= granted ? verdict::in_order : verdict::overtaken;
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
                const verdict how = judge(all, *early, late);
                if (how == verdict::unknown) {
                    into.passed_over(invariant::fifo_as_seen);
                    continue;
                }
                into.checked(invariant::fifo_as_seen);
                if (how == verdict::overtaken) {
                    into.violated(invariant::fifo_as_seen, *early->waiting, *late.grant,
                                  "overtaken in the queue");
                }
            }
        }
    }
}

}  // namespace monolock::history
