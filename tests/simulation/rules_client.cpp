#include <algorithm>

#include "simulation/rules.hpp"

namespace monolock::simulation {

// The client is never the optimist: it is the owner, or its end was announced. Whether it is the
// owner is asked of the session itself, because facts are stated only once the frames are written.
void rules::believers(std::span<const belief> who) {
    for (const belief& one : who) {
        claim_record& claim = records_[one.claim];
        const bool owns =
            claim.session != nullptr && claim.session->state() == core::session_state::owning;
        if (owns) {
            continue;
        }
        check_ever_owned(claim);
        if (claim.word_given || (claim.at == claim_record::stage::ended &&
                                 claim.reason == core::end_reason::io_timeout)) {
            ++world_->counts->beliefs_outlived;
            continue;
        }
        believes_after_end(claim, who);
    }
    check_one_believer(who);
}

// Who is still on its way to the queue, or in it, has never been the owner: no end excuses it. (One
// that was granted its lock a moment ago is owning by its session's own word.)
void rules::check_ever_owned(const claim_record& who) const {
    switch (who.at) {
        case claim_record::stage::outside:
        case claim_record::stage::moving:
        case claim_record::stage::arrived:
        case claim_record::stage::waiting:
            fail(rule::believer_owns, who, "its client believes, and it was never granted");
        case claim_record::stage::owning:
        case claim_record::stage::ended:
            return;
    }
}

void rules::check_one_believer(std::span<const belief> who) const {
    for (std::size_t left = 0; left < who.size(); ++left) {
        const claim_record& one = records_[who[left].claim];
        for (std::size_t right = left + 1; right < who.size(); ++right) {
            const claim_record& two = records_[who[right].claim];
            if (one.lock == two.lock && !one.word_given && !two.word_given &&
                one.reason != core::end_reason::io_timeout &&
                two.reason != core::end_reason::io_timeout) {
                fail(rule::two_believers, one,
                     "so does the client of connection " + std::to_string(two.id));
            }
        }
    }
}

void rules::believes_after_end(claim_record& who, std::span<const belief> all) {
    const bool another = std::any_of(all.begin(), all.end(), [&](const belief& one) {
        const claim_record& it = records_[one.claim];
        return it.id != who.id && it.lock == who.lock && !it.word_given;
    });
    who.believed_after_end = true;
    who.believed_with_another = who.believed_with_another || another;
    if (who.at == claim_record::stage::ended) {
        fail(another ? rule::two_believers : rule::believer_owns, who,
             "its client believes after the end, which nobody announced");
    }
    // An owner still: the server is stopped in the midst of the call that ends it; why will be said
    // when it goes on.
}

void rules::loser_stopped(int client, const claim_record& who, bool still_believes) {
    if (still_believes) {
        fail(rule::loser_stops, who,
             "client " + std::to_string(client) + " has read of the end and still believes");
    }
}

void rules::judged(int client, const claim_record& who, bool deadline_passed, bool gave_up) const {
    if (deadline_passed != gave_up) {
        fail(rule::deadline_kept, who,
             "client " + std::to_string(client) +
                 (gave_up ? " gives it up before its deadline" : " is past its deadline"));
    }
}

void rules::resource_written(const claim_record& by, std::uint64_t token) {
    lock_book& lock = locks_[static_cast<std::size_t>(by.lock)];
    ++world_->counts->writes;
    if (token < lock.resource_token) {
        ++world_->counts->stale_writes_refused;
        world_->log.note({"resource", by.lock}, "refuses a write with token {}", token);
        return;
    }
    const claim_record* const before = lock.resource_by;
    const bool of_earlier_grant =
        before != nullptr && by.grant_number != 0 && by.grant_number < before->grant_number;
    if (of_earlier_grant && tokens_promise_order(by, *before)) {
        fail(rule::fenced_resource, by,
             "accepted a write with token " + std::to_string(token) + " of an earlier grant");
    }
    lock.resource_token = token;
    lock.resource_by = &by;
}

// Not if the later process read a wall clock that was behind what the earlier one had read by then.
bool rules::tokens_promise_order(const claim_record& earlier, const claim_record& later) {
    return earlier.process == later.process || later.wall_ms > earlier.wall_ms_max;
}

}  // namespace monolock::simulation
