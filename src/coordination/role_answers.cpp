// The half of the role machine that hears: answers, events of the watch, and what follows.

#include <algorithm>
#include <utility>

#include "coordination/role_machine.hpp"

namespace monolock::coordination {

// ---- answers

void role_machine::take(ticket to, const answer& what, time_point now) {
    if (role_ == role::retired) {
        return;
    }
    expire(now);  // whatever arrived
    if (chain_ && chain_->is == to) {
        take_transaction(what, now);
    } else if (keep_alive_ == to) {
        keep_alive_.reset();
        take_kept(what, now);
    } else if (lease_wanted_ == to) {
        lease_wanted_.reset();
        take_lease(what, now);
    } else if (look_ == to) {
        look_.reset();
        take_look(what, now);
    } else if (revoke_ == to) {
        revoke_.reset();  // best effort, whatever it says
        retire_if_done();
    }
    judge(now);
}

void role_machine::complain(const answer& what) {
    ++store_errors_;
    const auto* const none = std::get_if<failed>(&what);
    last_error_ = none != nullptr ? none->why : "an answer that makes no sense";
}

void role_machine::take_look(const answer& what, time_point now) {
    const auto* const got = std::get_if<seen>(&what);
    const bool makes_sense = got != nullptr && got->as_of.value > 0 &&
                             (!got->active || got->active->modified <= got->as_of);
    if (!makes_sense) {
        complain(what);
        look_at_ = now + pause_.after_failure();
        return;
    }
    if (got->active) {
        saw(*got->active, now);
    }
    if (role_ != role::standby) {
        return;  // the watch knew more meanwhile
    }
    active_ = got->active;
    watch_ = watch_order{.number = watch_ ? watch_->number + 1 : 1, .from = {got->as_of.value + 1}};
    watch_broke_ = false;
    if (active_) {
        look_at_ = now + nanoseconds{options_.ttl} / 2;
    } else {
        become_candidate(now);
    }
}

void role_machine::take_lease(const answer& what, time_point now) {
    const auto* const got = std::get_if<lease_granted>(&what);
    if (got == nullptr || got->lease.value == 0) {
        complain(what);
        lease_at_ = now + pause_.after_failure();
        return;
    }
    lease_ = lease{.id = got->lease, .ttl = std::min(options_.ttl, got->ttl)};
    if (got->ttl.count() < 1) {
        complain(what);
        lease_at_ = now + pause_.after_failure();
        drop_lease();
    } else if (role_ != role::campaigning) {
        drop_lease();
    }
}

void role_machine::take_kept(const answer& what, time_point now) {
    const auto* const got = std::get_if<lease_kept>(&what);
    if (got == nullptr) {
        complain(what);
    } else if (got->ttl.count() < 1) {
        lose(loss::lease_gone, "", now);
    }
    // A lease that lives proves nothing: a deposed leader of etcd answers this, too.
}

void role_machine::take_transaction(const answer& what, time_point now) {
    const transaction sent = *std::exchange(chain_, std::nullopt);
    if (sent.stale) {
        return;
    }
    switch (sent.what) {
        case step::campaign:
            take_campaign(sent, what, now);
            break;
        case step::renewal:
            take_renewal(sent, what, now);
            break;
        case step::resignation:
            take_resignation(what);
            break;
    }
}

void role_machine::take_campaign(const transaction& sent, const answer& what, time_point now) {
    const auto* const got = std::get_if<campaigned>(&what);
    if (got != nullptr && got->won && got->at.value > 0) {
        win(sent, *got, now);
        return;
    }
    // Won or not for all that is known, or lost: that lease is not used again, and what was done
    // under it goes with it.
    drop_lease();
    if (got != nullptr && !got->won && got->active) {
        saw(*got->active, now);
        active_ = got->active;
        become_standby(watch_broke_ ? now : now + nanoseconds{options_.ttl} / 2);
    } else {
        complain(what);
        put_off_campaign(now);
        become_standby(now + pause_.after_failure());
    }
}

void role_machine::win(const transaction& sent, const campaigned& what, time_point now) {
    const state_record before = what.state.value_or(state_record{});
    const time_point opens_at = sightings_.opens_at(what.state, what.at, now, lease_->ttl);
    const std::uint64_t first = std::max<std::uint64_t>(before.ceiling, 1);
    tenure_.emplace(tenure{.held = *lease_,
                           .mine = what.at,
                           .known = what.at,
                           .confirmed_at = sent.sent_at,
                           .opens_at = opens_at,
                           .inherited_lease = before.longest_lease,
                           .tokens = {.first = first, .ceiling = first},
                           .leases = {before.longest_lease, options_.grant_delay.covered_max},
                           .renew_at = now,
                           .renew_from = now,
                           .keep_alive_at = sent.sent_at + nanoseconds{lease_->ttl} / 4,
                           .trouble = {}});
    lease_.reset();
    active_.reset();
    pause_.worked();
    role_ = role::waiting;
}

void role_machine::take_renewal(const transaction& sent, const answer& what, time_point now) {
    const auto* const got = std::get_if<renewed>(&what);
    if (got != nullptr && got->done && got->at > tenure_->known) {
        confirm(sent, got->at, now);
    } else if (got != nullptr && !got->done) {
        not_renewed(sent, *got, now);
    } else {
        complain(what);
        tenure_->trouble = last_error_;
        tenure_->renew_from = sent.sent_at + nanoseconds{tenure_->held.ttl} / 8;
        tenure_->renew_at = tenure_->renew_from;
    }
}

void role_machine::confirm(const transaction& sent, revision at, time_point now) {
    tenure& mine = *tenure_;
    mine.known = at;
    mine.confirmed_at = sent.sent_at;
    if (sent.names) {
        mine.tokens.ceiling = sent.ceiling;
        mine.leases.answered(sent.longest_lease);
        mine.named = true;
    }
    mine.renewed = true;
    mine.recovering = false;
    mine.trouble.clear();
    last_error_.clear();
    if (role_ == role::active) {
        campaign_pause_.worked();
    }
    mine.renew_at = sent.sent_at + nanoseconds{mine.held.ttl} / 4;
    mine.renew_from = now;
}

// What was written before it, unanswered, may show here, too: then it is said once more, from
// there. Else it was worth a try.
void role_machine::take_resignation(const answer& what) {
    const auto* const got = std::get_if<resigned>(&what);
    const bool goes_on = got != nullptr && !got->done && got->active &&
                         got->active->created == tenure_->mine &&
                         got->active->modified > tenure_->known;
    if (goes_on && !tenure_->recovering) {
        tenure_->known = got->active->modified;
        tenure_->recovering = true;
        return;
    }
    end_tenure();  // what is left is to revoke the lease
}

// Nothing was written; what was written before it, unanswered, may show.
void role_machine::not_renewed(const transaction& sent, const renewed& what, time_point now) {
    if (!what.active) {
        lose(loss::key_gone, "", now);
        return;
    }
    tenure& mine = *tenure_;
    if (what.active->created != mine.mine) {
        lose(loss::key_taken, what.active->value.name, now);
        return;
    }
    const time_point later = sent.sent_at + nanoseconds{mine.held.ttl} / 8;
    const bool goes_on = what.active->modified > mine.known;
    if (goes_on) {
        // The chain goes on from what a lost answer's renewal made. This proves nothing about the
        // time: the successor counts from when it saw that one, not from this.
        mine.known = what.active->modified;
    } else {
        complain(what);
        mine.trouble = last_error_;
    }
    mine.renew_from = goes_on && !mine.recovering ? now : later;
    mine.renew_at = mine.renew_from;
    mine.recovering = goes_on;
}

// ---- the watch

void role_machine::take(const watch_event& what, time_point now) {
    expire(now);
    if (const auto* const put = std::get_if<active_put>(&what)) {
        take_put(put->entry, now);
    } else if (const auto* const deleted = std::get_if<active_deleted>(&what)) {
        take_deleted(deleted->at, now);
    } else if (const auto* const broken = std::get_if<watch_broken>(&what)) {
        take_broken(broken->why, now);
    }
    judge(now);
}

void role_machine::take_put(const active_entry& what, time_point now) {
    if (tenure_) {
        // A hint; a transaction decides.
        if (what.created != tenure_->mine && what.modified > tenure_->known) {
            tenure_->renew_at = tenure_->renew_from;
        }
        return;
    }
    saw(what, now);
    active_ = what;
    pause_.worked();
    if (role_ == role::standby) {
        look_at_ = now + nanoseconds{options_.ttl} / 2;
    } else if (role_ == role::campaigning && !chain_) {
        drop_lease();
        become_standby(now + nanoseconds{options_.ttl} / 2);
    }
}

void role_machine::take_deleted(revision at, time_point now) {
    if (tenure_) {
        if (at > tenure_->known) {
            tenure_->renew_at = tenure_->renew_from;
        }
        return;
    }
    if (active_ && at < active_->modified) {
        return;
    }
    active_.reset();
    pause_.worked();
    if (role_ == role::standby) {
        become_candidate(now);
    }
}

void role_machine::take_broken(const std::string& why, time_point now) {
    complain(failed{why});
    watch_broke_ = true;
    if (role_ == role::standby) {
        const bool first = pause_.at_rest();
        const nanoseconds wait = pause_.after_failure();
        look_at_ = first ? now : now + wait;
    }
}

// ---- what follows

void role_machine::become_standby(time_point look_at) {
    role_ = role::standby;
    look_at_ = look_at;
}

void role_machine::become_candidate(time_point now) {
    role_ = role::campaigning;
    lease_at_ = std::max(now, campaign_from_);
}

// What this server has won, or may have, it gives up again: nobody else does so, and there is
// nothing to tell it that the next time ends otherwise.
void role_machine::put_off_campaign(time_point now) {
    campaign_from_ = now + campaign_pause_.after_failure();
}

// Who has renewed has got past what a campaign, and one's own, may fail of.
void role_machine::saw(const active_entry& what, time_point now) {
    sightings_.saw(what, now);
    if (what.value.sequence > 0) {
        campaign_pause_.worked();
        last_error_.clear();
    }
}

void role_machine::lose(loss why, const std::string& how, time_point now) {
    last_loss_ = to_string(why);
    if (!how.empty()) {
        last_loss_ += ": " + how;
    }
    end_tenure();
    if (role_ == role::active && !events_.empty()) {
        // What is there is the order to open, which nobody has seen.
        events_.clear();
        --failovers_;
        put_off_campaign(now);
        become_standby(now);
        if (withdrawn_) {
            shut_down(now);
        }
    } else if (role_ == role::active) {
        leaving_ = withdrawn_;
        role_ = role::stepping_down;
        events_.emplace_back(step_down_now{why});
    } else if (role_ == role::waiting) {
        put_off_campaign(now);
        become_standby(now);
    }
    // Stepping down by order: then nothing is left to resign.
}

// The old lease is revoked once, when no session is left, and never used again.
void role_machine::end_tenure() {
    if (!tenure_) {
        return;
    }
    to_revoke_.push_back(tenure_->held.id);
    tenure_.reset();
    keep_alive_.reset();
    if (chain_) {
        chain_->stale = true;
    }
}

void role_machine::drop_lease() {
    if (lease_) {
        to_revoke_.push_back(lease_->id);
        lease_.reset();
    }
}

void role_machine::retire_if_done() {
    if (role_ == role::resigning && !tenure_ && to_revoke_.empty() && !revoke_) {
        role_ = role::retired;
        events_.emplace_back(retired_now{});
    }
}

}  // namespace monolock::coordination
