#include <algorithm>
#include <utility>

#include "simulation/rules.hpp"

namespace monolock::simulation {

namespace {

constexpr nanoseconds lateness_max = milliseconds{5};
constexpr std::size_t real_buffer_min = 2048;  // no kernel has smaller ones

std::string ns(nanoseconds value) {
    return std::to_string(value.count()) + " ns";
}

}  // namespace

std::string lock_name_of(int lock) {
    return "lock " + std::to_string(lock);
}

rules::rules(context& world, int locks) : world_{&world} {
    for (int lock = 0; lock < locks; ++lock) {
        static_cast<void>(book_of(lock_name_of(lock)));
    }
}

// The clients' locks come first; garbage can name others.
int rules::book_of(const std::string& name) {
    const auto found = std::find_if(locks_.begin(), locks_.end(),
                                    [&](const lock_book& lock) { return lock.name == name; });
    if (found == locks_.end()) {
        locks_.emplace_back().name = name;
        return static_cast<int>(locks_.size()) - 1;
    }
    return static_cast<int>(found - locks_.begin());
}

claim_record& rules::of(std::uint32_t id) {
    while (records_.size() <= id) {
        const auto next = static_cast<std::uint32_t>(records_.size());
        records_.emplace_back().id = next;
    }
    return records_[id];
}

void rules::fail(rule broken, const claim_record& who, const std::string& how) const {
    world_->log.fail(broken, "connection " + std::to_string(who.id) + " (lock " +
                                 std::to_string(who.lock) + "): " + how);
}

void rules::process_started(unsigned process, std::int64_t wall_ms, int shards,
                            unsigned access_generation) {
    world_->log.note({"server"}, "process {} starts, {} shards, wall clock {} ms", process, shards,
                     wall_ms);
    world_->told.server_starts(world_->events.now());
    process_ = process;
    longest_lease_.reset();
    shutdown_began_.reset();
    shard_book fresh;
    fresh.generation = access_generation;
    shards_.assign(static_cast<std::size_t>(shards), fresh);
}

void rules::process_ended() {
    world_->told.server_ends(world_->events.now());
    for (claim_record& who : records_) {
        if (who.process == process_ && who.at != claim_record::stage::ended) {
            who.word_given = true;
            who.at = claim_record::stage::ended;
            who.reason = core::end_reason::graceful;
            who.session = nullptr;
            who.write_failed = true;
        }
        who.touched = false;
    }
    for (lock_book& lock : locks_) {
        lock.line.clear();
        lock.owner.reset();
        lock.home = -1;
    }
    moving_.clear();
    for (shard_book& shard : shards_) {
        shard.touched.clear();
    }
    tokens_before_.push_back(std::exchange(tokens_, {}));
}

void rules::shutdown_begins() {
    shutdown_began_ = world_->events.now();
    world_->told.sends_away(world_->events.now());
}

void rules::arrived(claim_record& who, const std::string& name, const core::session& session,
                    int shard) {
    who.lock = book_of(name);
    who.process = process_;
    who.shard = shard;
    who.at = claim_record::stage::arrived;
    who.session = &session;
    who.messages = 1;
    if (who.sends && who.sends->behind == 0) {
        fail(rule::garbage_refused, who, "admitted, and its ACQUIRE is none");
    }
    lock_book& lock = locks_[static_cast<std::size_t>(who.lock)];
    if (lock.home >= 0 && lock.home != shard) {
        fail(rule::one_home, who,
             "came to shard " + std::to_string(shard) + ", and its lock lives on shard " +
                 std::to_string(lock.home));
    }
    lock.home = shard;
    if (lock.line.empty()) {
        lock.exists_since = world_->events.now();
    }
    lock.line.push_back(who.id);
}

void rules::fact_stated(const core::fact& what) {
    if (const auto* const wait = std::get_if<core::queued>(&what)) {
        claim_record& who = of(static_cast<std::uint32_t>(wait->who->id().value));
        if (who.at != claim_record::stage::arrived) {
            fail(rule::ghost, who, "queued, but it did not just arrive");
        }
        world_->log.note({"server"}, "connection {} waits for lock {}", who.id, who.lock);
        who.at = claim_record::stage::waiting;
        touch(who);
        who.expected.push_back({.type = protocol::server_message::waiting});
    } else if (const auto* const grant = std::get_if<core::granted>(&what)) {
        granted(*grant);
    } else if (const auto* const ack = std::get_if<core::acknowledged>(&what)) {
        acknowledged(*ack);
    } else {
        ended(std::get<core::ended>(what));
    }
}

void rules::granted(const core::granted& what) {
    claim_record& who = of(static_cast<std::uint32_t>(what.who->id().value));
    lock_book& lock = locks_[static_cast<std::size_t>(who.lock)];
    world_->log.note({"server"}, "connection {} owns lock {}, token {}", who.id, who.lock,
                     what.token.value);
    if (who.at != claim_record::stage::arrived && who.at != claim_record::stage::waiting) {
        fail(rule::ghost, who, "granted, but it is not waiting");
    }
    if (lock.owner) {
        fail(rule::one_owner, who,
             "granted while connection " + std::to_string(*lock.owner) + " owns");
    }
    if (shard_book_of(who.shard).withheld) {
        fail(rule::no_grant_withheld, who, "granted while grants are withheld");
    }
    check_turn(who);
    check_permitted(who);
    if (what.token.value != shard_book_of(who.shard).last_token) {
        fail(rule::tokens_grow, who,
             "granted with a token that is not the last one its shard took");
    }
    ++world_->counts->grants;
    world_->counts->promotions += who.at == claim_record::stage::waiting ? 1U : 0U;
    lock.owner = who.id;
    who.at = claim_record::stage::owning;
    who.token = what.token.value;
    who.wall_ms = shard_book_of(who.shard).last_wall_ms;
    who.wall_ms_max = shard_book_of(who.shard).wall_ms_max;
    who.grant_number = ++grants_;
    touch(who);
    who.expected.push_back({.type = protocol::server_message::acquired, .token = who.token});
}

void rules::check_turn(const claim_record& who) {
    const lock_book& lock = locks_[static_cast<std::size_t>(who.lock)];
    for (const std::uint32_t id : lock.line) {
        const claim_record& behind = records_[id];
        if (behind.id != who.id && behind.waiting_seen && who.first_sent &&
            *behind.waiting_seen < *who.first_sent) {
            fail(rule::fifo_as_seen, who,
                 "granted, but connection " + std::to_string(id) +
                     " saw WAITING before this one's ACQUIRE was sent");
        }
    }
    if (lock.line.front() != who.id) {
        fail(rule::fifo, who, "granted before connection " + std::to_string(lock.line.front()));
    }
}

void rules::token_taken(int shard, std::uint64_t token, std::int64_t wall_ms) {
    if (token == 0 || token <= tokens_.last) {
        world_->log.fail(rule::tokens_grow, "token " + std::to_string(token) + " after " +
                                                std::to_string(tokens_.last));
    }
    for (const taken_tokens& before : tokens_before_) {
        if (wall_ms <= before.wall_ms_max) {
            world_->told.clock_went_back(world_->events.now());
        } else if (token <= before.last) {
            world_->log.fail(rule::tokens_grow,
                             "token " + std::to_string(token) + " after " +
                                 std::to_string(before.last) +
                                 " of an earlier process, and the wall clock did not go back");
        }
    }
    tokens_ = {.wall_ms_max = std::max(tokens_.wall_ms_max, wall_ms), .last = token};
    shard_book& at = shard_book_of(shard);
    at.last_token = token;
    at.last_wall_ms = wall_ms;
    at.wall_ms_max = tokens_.wall_ms_max;
}

void rules::acknowledged(const core::acknowledged& what) {
    claim_record& who = of(static_cast<std::uint32_t>(what.who->id().value));
    const bool owning = what.state == core::session_state::owning;
    if (who.at != (owning ? claim_record::stage::owning : claim_record::stage::waiting)) {
        fail(rule::ghost, who, "answered as what it is not");
    }
    check_mandate(who, "its message is answered");
    if (who.unanswered == 0) {
        fail(rule::one_reply_per_message, who, "an answer without a message");
    }
    --who.unanswered;
    if (++who.answered; who.sends && who.answered >= who.sends->behind) {
        fail(rule::garbage_refused, who, "answered as if it were a message");
    }
    ++world_->counts->replies;
    touch(who);
    who.expected.push_back(
        {.type = owning ? protocol::server_message::acquired : protocol::server_message::waiting,
         .token = owning ? who.token : 0});
}

void rules::ended(const core::ended& what) {
    claim_record& who = of(static_cast<std::uint32_t>(what.who->id().value));
    const auto how = [&] { return "ended " + std::string{to_string(what.why)}; };
    switch (what.why) {
        case core::end_reason::graceful:
            world_->log.note({"server"}, "connection {} ended: graceful", who.id);
            break;
        case core::end_reason::expired:
            world_->log.note({"server"}, "connection {} ended: expired", who.id);
            break;
        case core::end_reason::io_timeout:
            world_->log.note({"server"}, "connection {} ended: io_timeout", who.id);
            break;
        case core::end_reason::force:
            world_->log.note({"server"}, "connection {} ended: force", who.id);
            break;
    }
    if (who.at != claim_record::stage::waiting && who.at != claim_record::stage::owning) {
        fail(rule::ghost, who, how() + " twice");
    }
    // By itself an owner may: it inherited the lock in this sweep, and its push found that it is
    // gone.
    if (shard_book_of(who.shard).sweeping && who.at == claim_record::stage::owning && who.refused) {
        fail(rule::owners_stay, who, how() + " while waiters were revoked");
    }
    if (what.why == core::end_reason::force && !who.ordered_out) {
        fail(rule::force_as_ordered, who, how() + ", and no operator said so");
    }
    if (what.why != core::end_reason::force && who.ordered_out) {
        fail(rule::force_as_ordered, who, how() + ", and an operator did it");
    }
    if (who.refused && !who.error_written && !who.write_short && !who.write_failed) {
        fail(rule::error_first, who, how() + " before its ERROR was written");
    }
    lock_book& lock = locks_[static_cast<std::size_t>(who.lock)];
    lock.line.erase(std::find(lock.line.begin(), lock.line.end(), who.id));
    if (lock.owner == who.id) {
        lock.owner.reset();
    }
    who.at = claim_record::stage::ended;
    who.reason = what.why;
    ++world_->counts->ends[static_cast<std::size_t>(what.why)];

    const bool by_word =
        what.why == core::end_reason::graceful || what.why == core::end_reason::force;
    if (by_word && !who.word_given) {
        fail(rule::ended_for_cause, who, how() + ", but nobody said a word");
    }
    if (what.why == core::end_reason::io_timeout) {
        // By a RST, which can be lost. It is decided where the last write takes nothing; the shard
        // may stop in its turn before it says so here, when the next owner has its grant already.
        world_->told.announced(who.id, who.short_write_at);
    }
    if (what.why == core::end_reason::io_timeout && who.honest &&
        world_->plan.send_buffer >= real_buffer_min) {
        fail(rule::reader_not_blocked, who, how());
    }
    if (what.why == core::end_reason::expired && who.believed_after_end) {
        fail(who.believed_with_another ? rule::two_believers : rule::believer_owns, who,
             "expired while its client believed");
    }
}

void rules::expired(const claim_record& who, const expiry_evidence& evidence) {
    const nanoseconds silence = evidence.reading - evidence.last_arrival;
    if (evidence.word_read) {
        fail(rule::ends_at_once, who, "expired although its peer had said that this is the end");
    }
    if (evidence.reads && evidence.unread_before_reading) {
        fail(rule::early_expiry, who,
             "expired with a byte in its socket that was there to be read");
    }
    if (evidence.reads && silence <= who.lease) {
        fail(rule::early_expiry, who, "silent for " + ns(silence) + ", lease " + ns(who.lease));
    }
    const nanoseconds over = evidence.last_receive + who.lease;
    if (evidence.reading <= over) {
        fail(rule::early_expiry, who,
             "expired " + ns(over - evidence.reading) + " before its lease was over");
    }
    const nanoseconds late =
        evidence.reading - std::max({over, evidence.came_home, evidence.went_on});
    if (late > lateness_max) {
        fail(rule::late_expiry, who,
             "expired " + ns(evidence.reading - over) + " after its lease was over, and " +
                 ns(late) + " after it could have been");
    }
}

void rules::io_timed_out(const claim_record& who, nanoseconds reading, nanoseconds blocked_since,
                         nanoseconds limit, nanoseconds went_on) {
    const nanoseconds blocked = reading - blocked_since;
    if (blocked <= limit) {
        fail(rule::io_timeout_bounds, who, "ended after " + ns(blocked) + ", limit " + ns(limit));
    }
    if (reading - std::max(blocked_since + limit, went_on) > lateness_max) {
        fail(rule::io_timeout_bounds, who,
             "ended only after " + ns(blocked) + ", limit " + ns(limit));
    }
}

void rules::ended_by_limit(const claim_record& who, core::end_reason why, nanoseconds lease_over,
                           nanoseconds io_over) const {
    if (why == core::end_reason::expired && lease_over >= io_over) {
        fail(rule::first_limit, who, "expired, but its I/O timeout passed before its lease");
    }
    if (why == core::end_reason::io_timeout && io_over > lease_over) {
        fail(rule::first_limit, who, "ended io_timeout, but its lease passed before");
    }
}

void rules::left_unread(const claim_record& who, nanoseconds since) const {
    if (since > lateness_max && !who.write_short) {
        fail(rule::read_in_time, who,
             "a byte has been there for " + ns(since) + " and is not read");
    }
}

void rules::call_returned(int shard) {
    shard_book& at = shard_book_of(shard);
    for (claim_record* const who : at.touched) {
        who->touched = false;
        compare_frames(*who);
        if (who->word_given && who->session != nullptr) {
            fail(rule::ends_at_once, *who, "its end was announced and it goes on");
        }
        if (who->unanswered > 0 && !who->word_given && !who->write_failed &&
            who->at != claim_record::stage::ended) {
            fail(rule::one_reply_per_message, *who,
                 std::to_string(who->unanswered) + " messages have no answer");
        }
    }
    at.touched.clear();
    at.in_force.reset();
    check_idle(shard);
}

void rules::tokens_limited(std::optional<milliseconds> longest) {
    longest_lease_ = longest;
    for (shard_book& shard : shards_) {
        ++shard.retries_due;
    }
}

void rules::all_retried(int shard) {
    --shard_book_of(shard).retries_due;
    check_idle(shard);
}

void rules::check_idle(int shard) const {
    const shard_book& at = shard_book_of(shard);
    if (at.withheld || at.retries_due > 0) {
        return;
    }
    for (const lock_book& lock : locks_) {
        if (lock.home != shard || lock.owner || lock.line.empty()) {
            continue;
        }
        const claim_record& head = records_[lock.line.front()];
        if (!longest_lease_ || head.lease <= *longest_lease_) {
            fail(rule::no_idle_lock, head, "waits for a lock that nobody owns");
        }
    }
}

}  // namespace monolock::simulation
