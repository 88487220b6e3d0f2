#include "coordination/role_machine.hpp"

#include <algorithm>
#include <utility>

#include "coordination/token_window.hpp"

namespace monolock::coordination {

namespace {

using std::chrono::milliseconds;

nanoseconds mandate_of(milliseconds ttl) {
    return nanoseconds{ttl} * 4 / 5;
}

void earliest(std::optional<time_point>& first, std::optional<time_point> other) {
    if (other && (!first || *other < *first)) {
        first = other;
    }
}

std::string milliseconds_of(nanoseconds time) {
    return std::to_string(std::chrono::floor<milliseconds>(time).count()) + " ms";
}

}  // namespace

role_machine::role_machine(role_options options)
    : options_{std::move(options)}, pause_{options_.ttl}, campaign_pause_{options_.ttl} {}

// ---- what is due

std::optional<time_point> role_machine::revoke_due() const {
    if (to_revoke_.empty() || revoke_ || role_ == role::stepping_down) {
        return std::nullopt;
    }
    return time_point{};
}

std::optional<time_point> role_machine::look_due() const {
    return role_ == role::standby && !look_ ? std::optional{look_at_} : std::nullopt;
}

std::optional<time_point> role_machine::lease_due() const {
    const bool wanted = role_ == role::campaigning && !lease_ && !lease_wanted_ && !chain_;
    return wanted ? std::optional{lease_at_} : std::nullopt;
}

std::optional<time_point> role_machine::campaign_due() const {
    const bool ready = role_ == role::campaigning && lease_ && !chain_;
    return ready ? std::optional{time_point{}} : std::nullopt;
}

std::optional<time_point> role_machine::keep_alive_due() const {
    const bool wanted = tenure_ && role_ != role::resigning && !keep_alive_;
    return wanted ? std::optional{tenure_->keep_alive_at} : std::nullopt;
}

std::optional<time_point> role_machine::renewal_due() const {
    if (!tenure_ || role_ == role::resigning || chain_) {
        return std::nullopt;
    }
    time_point due = tenure_->renew_at;
    if (!tenure_->named) {
        due = std::min(due, tenure_->opens_at);
    } else if (tenure_->leases.wants_more()) {
        due = tenure_->renew_from;
    }
    return std::max(due, tenure_->renew_from);
}

std::optional<time_point> role_machine::resignation_due() const {
    const bool ready = tenure_ && role_ == role::resigning && !chain_;
    return ready ? std::optional{time_point{}} : std::nullopt;
}

std::optional<outgoing> role_machine::next(time_point now, token_position tokens) {
    judge(now);
    if (tenure_ && tenure_->named &&
        ceiling_is_near(tenure_->tokens, tokens, token_window(tenure_->held.ttl))) {
        tenure_->renew_at = tenure_->renew_from;
    }
    const ticket fresh{tickets_ + 1};
    auto what = due_request(fresh, now, tokens);
    if (!what) {
        return std::nullopt;
    }
    ++tickets_;
    return outgoing{.is = fresh, .what = *std::move(what)};
}

// What guards the mandate comes first.
std::optional<request> role_machine::due_request(ticket fresh, time_point now,
                                                 token_position tokens) {
    const auto is_due = [now](std::optional<time_point> at) { return at && *at <= now; };
    if (is_due(renewal_due())) {
        return renewal_request(fresh, now, tokens);
    }
    if (is_due(resignation_due())) {
        return resignation_request(fresh, now, tokens);
    }
    if (is_due(campaign_due())) {
        return campaign_request(fresh, now);
    }
    if (is_due(keep_alive_due())) {
        keep_alive_ = fresh;
        tenure_->keep_alive_at = now + nanoseconds{tenure_->held.ttl} / 4;
        return keep_lease_alive{tenure_->held.id};
    }
    if (is_due(lease_due())) {
        lease_wanted_ = fresh;
        return grant_lease{options_.ttl};
    }
    if (is_due(look_due())) {
        look_ = fresh;
        return look{};
    }
    if (is_due(revoke_due())) {
        revoke_ = fresh;
        const lease_id old = to_revoke_.back();
        to_revoke_.pop_back();
        return revoke_lease{old};
    }
    return std::nullopt;
}

request role_machine::campaign_request(ticket fresh, time_point now) {
    chain_ = transaction{.what = step::campaign, .is = fresh, .sent_at = now};
    return campaign{.lease = lease_->id,
                    .value = {.name = options_.name, .ttl = lease_->ttl, .sequence = 0}};
}

request role_machine::renewal_request(ticket fresh, time_point now, token_position tokens) {
    tenure& mine = *tenure_;
    ++mine.sequence;
    chain_ = transaction{.what = step::renewal, .is = fresh, .sent_at = now};
    renew what{.lease = mine.held.id,
               .mine = mine.mine,
               .known = mine.known,
               .value = {.name = options_.name, .ttl = mine.held.ttl, .sequence = mine.sequence},
               .state = {}};
    if (now >= mine.opens_at) {
        chain_->names = true;
        chain_->ceiling = next_ceiling(mine.tokens, tokens, token_window(mine.held.ttl));
        chain_->longest_lease = mine.leases.put(now);
        sightings_.sent(mine.mine, mine.sequence, now);
        what.state = state_of(chain_->ceiling, chain_->longest_lease);
    }
    return what;
}

// The ceiling comes down to what was granted, so that planned handovers do not carry tokens further
// and further ahead of the clock.
request role_machine::resignation_request(ticket fresh, time_point now, token_position tokens) {
    tenure& mine = *tenure_;
    ++mine.sequence;
    chain_ = transaction{.what = step::resignation, .is = fresh, .sent_at = now};
    const std::uint64_t unused =
        std::min(std::max(mine.tokens.first, tokens.last + 1), mine.tokens.ceiling);
    state_record last = state_of(unused, mine.leases.recorded());
    last.resigned = true;
    return resign{.mine = mine.mine, .known = mine.known, .state = std::move(last)};
}

state_record role_machine::state_of(std::uint64_t ceiling, milliseconds longest) const {
    return {.ceiling = ceiling,
            .longest_lease = longest,
            .name = options_.name,
            .ttl = tenure_->held.ttl,
            .written_in = tenure_->mine,
            .sequence = tenure_->sequence,
            .resigned = false};
}

std::optional<time_point> role_machine::next_wakeup() const {
    if (!events_.empty()) {
        return time_point{};  // whoever has not asked for them shall not sleep first
    }
    std::optional<time_point> first;
    for (const auto due : {revoke_due(), look_due(), lease_due(), campaign_due(), keep_alive_due(),
                           renewal_due(), resignation_due()}) {
        earliest(first, due);
    }
    if (role_ == role::waiting || role_ == role::active) {
        earliest(first, deadline());
    }
    return first;
}

// ---- time

void role_machine::judge(time_point now) {
    expire(now);
    open_if_named(now);
}

// It has a turn four times in a TTL at least while it has the key: when none came for twice as
// long, that says more than what etcd did.
void role_machine::expire(time_point now) {
    const nanoseconds still = now - std::exchange(turned_at_, now);
    if ((role_ == role::waiting || role_ == role::active) && now >= deadline()) {
        lose(loss::mandate_over,
             still > nanoseconds{options_.ttl} / 2
                 ? "this process stood still for " + milliseconds_of(still)
                 : tenure_->trouble,
             now);
    }
}

// The renewal that named it was sent when it might open: whoever reads that name need not look
// behind it, and whoever reads another one knows that this server has not opened.
void role_machine::open_if_named(time_point now) {
    if (role_ != role::waiting || !tenure_->named) {
        return;
    }
    role_ = role::active;
    ++failovers_;
    const grant_delay_rule& rule = options_.grant_delay;
    const milliseconds delay =
        rule.fixed.value_or(std::min(tenure_->inherited_lease, rule.covered_max));
    grants_from_ = now + std::max(delay, milliseconds{0});
    tenure_->leases.opened(now);
    events_.emplace_back(open_now{});
}

// ---- the server

std::optional<role_event> role_machine::next_event() {
    if (events_.empty()) {
        return std::nullopt;
    }
    const role_event first = events_.front();
    events_.erase(events_.begin());
    return first;
}

void role_machine::sessions_ended(time_point now) {
    if (role_ != role::stepping_down) {
        return;
    }
    if (leaving_) {
        role_ = role::resigning;
        retire_if_done();
    } else {
        become_standby(now);
    }
}

void role_machine::sessions_abandoned() {
    if (role_ != role::stepping_down || !leaving_) {
        return;
    }
    end_tenure();
    role_ = role::resigning;
    retire_if_done();
}

void role_machine::withdraw(time_point now) {
    expire(now);
    withdrawn_ = true;
    if (role_ != role::active) {
        shut_down(now);
    }
}

void role_machine::shut_down(time_point now, std::string_view why) {
    expire(now);
    if (leaving_) {
        return;
    }
    leaving_ = true;
    switch (role_) {
        case role::active:
            // The key stays its own, and is renewed, until the sessions are ended.
            role_ = role::stepping_down;
            last_loss_ = why.empty() ? to_string(loss::shut_down) : why;
            events_.emplace_back(step_down_now{loss::shut_down});
            break;
        case role::standby:
        case role::campaigning:
        case role::waiting:
            end_tenure();
            drop_lease();
            if (chain_) {
                chain_->stale = true;
            }
            role_ = role::resigning;
            retire_if_done();
            break;
        case role::stepping_down:
        case role::resigning:
        case role::retired:
            break;
    }
}

void role_machine::report(const lease_report& what, time_point now) {
    judge(now);
    if (tenure_) {
        tenure_->leases.report(what, now);
    }
}

// ---- what holds now

std::optional<term> role_machine::current_term() const noexcept {
    return tenure_ ? std::optional{tenure_->mine} : std::nullopt;
}

time_point role_machine::deadline() const noexcept {
    const bool counts = role_ == role::waiting || role_ == role::active;
    return counts ? tenure_->confirmed_at + mandate_of(tenure_->held.ttl) : time_point{};
}

token_range role_machine::tokens() const noexcept {
    return role_ == role::active ? tenure_->tokens : token_range{};
}

std::chrono::milliseconds role_machine::lease_limit() const noexcept {
    return role_ == role::active ? tenure_->leases.limit() : milliseconds{0};
}

std::chrono::milliseconds role_machine::longest_lease() const noexcept {
    return role_ == role::active ? tenure_->leases.recorded() : milliseconds{0};
}

std::optional<std::string> role_machine::holder() const {
    if (tenure_) {
        return options_.name;
    }
    return active_ ? std::optional{active_->value.name} : std::nullopt;
}

std::chrono::milliseconds role_machine::opens_in(time_point now) const noexcept {
    const bool waits = role_ == role::waiting && now < tenure_->opens_at;
    return waits ? std::chrono::ceil<milliseconds>(tenure_->opens_at - now) : milliseconds{0};
}

bool role_machine::holder_has_renewed() const noexcept {
    return tenure_ ? tenure_->renewed : active_ && active_->value.sequence > 0;
}

}  // namespace monolock::coordination
