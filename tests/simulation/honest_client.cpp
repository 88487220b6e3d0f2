#include "simulation/honest_client.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

drifting_clock draw_clock(context& world) {
    const std::int64_t drift = world.random.drift(world.plan.drift_max, world.plan.drift_at_limits);
    return {world.random.between(sim_time{0}, sim_time{1000s}), 1000 + drift};
}

const char* text_of(detail::loss_kind why) {
    switch (why) {
        case detail::loss_kind::acquire_timeout:
            return "lost its claim on lock {}: no answer to the ACQUIRE";
        case detail::loss_kind::heartbeat_timeout:
            return "lost its claim on lock {}: heartbeat timeout";
        case detail::loss_kind::connection_closed:
            return "lost its claim on lock {}: connection closed";
        case detail::loss_kind::protocol_violation:
            return "lost its claim on lock {}: protocol violation";
        case detail::loss_kind::server_error:
            return "lost its claim on lock {}: ERROR";
    }
    return "?";
}

// Whether the library would try again (docs/protocol.md, "The client's duties").
bool is_transient(const detail::claim_loss& why) {
    return why.kind != detail::loss_kind::server_error || protocol::is_temporary(why.code);
}

}  // namespace

honest_client::honest_client(context& world, rules& checks, dialer& network, int number)
    : world_{&world},
      rules_{&checks},
      network_{&network},
      number_{number},
      clock_{draw_clock(world)} {}

detail::claim_time honest_client::clock() const noexcept {
    return detail::claim_time{clock_.at(world_->events.now())};
}

bool honest_client::stopped() const noexcept {
    return world_->events.now() < stopped_until_;
}

// A timer of the process: it does not fire while the process is stopped, and never in a later
// attempt.
void honest_client::at_if_current(sim_time when, void (honest_client::*what)()) {
    world_->events.at(when, [this, what, attempt = attempt_] {
        if (attempt != attempt_) {
            return;
        }
        if (stopped()) {
            at_if_current(stopped_until_, what);
        } else {
            (this->*what)();
        }
    });
}

std::optional<rules::belief> honest_client::belief() const {
    if (link_ == nullptr || !claim_->owns(clock())) {
        return std::nullopt;
    }
    rules_->judged(number_, *record_, deadline_->passed(clock()), false);
    return rules::belief{.claim = link_->id(), .client = number_};
}

// ---- from rest to a connection

void honest_client::start() {
    at_if_current(world_->random.between(sim_time{0}, world_->plan.rest_max), &honest_client::dial);
}

void honest_client::rest() {
    ++attempt_;
    at_ = served_in_quiet_ ? phase::done : phase::resting;
    if (at_ == phase::resting) {
        const sim_time from =
            served_ ? std::max(quiet_from_, world_->events.now()) : world_->events.now();
        at_if_current(from + world_->random.spread(sim_time{100us},
                                                   calm_ ? sim_time{10ms} : world_->plan.rest_max),
                      &honest_client::dial);
    }
}

void honest_client::dial() {
    at_ = phase::dialing;
    began_quiet_ = world_->events.now() >= quiet_from_;
    network_->dial(number_, [this, attempt = attempt_](connection* link) {
        if (attempt == attempt_ && link != nullptr) {
            connected(*link);
        } else if (link != nullptr) {
            link->close(side::client);  // the process that dialled is no more
        } else if (attempt == attempt_) {
            rest();
        }
    });
}

void honest_client::connected(connection& link) {
    if (refused_ == nullptr) {
        lock_ =
            static_cast<int>(world_->random.below(static_cast<std::uint64_t>(world_->plan.locks)));
    } else {
        rules_->retried(*std::exchange(refused_, nullptr));
        ++world_->counts->retries;
    }
    lease_ = milliseconds{
        world_->random.spread(world_->plan.lease_min.count(), world_->plan.lease_max.count())};
    world_->log.note(self(), "connection {}: claims lock {}, lease {} ms", link.id(), lock_,
                     lease_.count());
    at_ = phase::claiming;
    world_->counts->quiet_claims += began_quiet_ ? 1U : 0U;
    link_ = &link;
    stream_.emplace(*world_, link, side::client);
    record_ = &rules_->of(link.id());
    record_->honest = true;
    claim_.emplace(lock_name_of(lock_), lease_);
    deadline_.emplace(lease_);
    link.own(side::client, this);
    in_turn_ = false;
    turn_scheduled_ = false;
    wants_write_ = false;
    timer_at_ = never;
    wake();
    if (world_->random.chance(world_->plan.gives_up)) {
        at_if_current(world_->events.now() +
                          world_->random.spread(sim_time{1ms}, sim_time{world_->plan.lease_max}),
                      &honest_client::give_up_waiting);
    }
}

// ---- turns

void honest_client::on_ready(connection& /*link*/) {
    if (stream_->holds_input() || stream_->socket_readable() ||
        (wants_write_ && stream_->socket_writable())) {
        wake();
    }
}

void honest_client::wake() {
    if (!in_turn_ && !turn_scheduled_) {
        turn_scheduled_ = true;
        next_ = step::read_clock;
        at_if_current(world_->events.now() + world_->random.between(sim_time{0}, sim_time{200us}),
                      &honest_client::take_turn);
    }
}

// Between any two steps the process may be stopped; the turn goes on afterwards where it was.
bool honest_client::stops_here() {
    if (!world_->random.chance(world_->plan.client_stops)) {
        return false;
    }
    ++world_->counts->client_stops;
    stop_for(world_->random.spread(sim_time{1us}, world_->plan.stop_max));
    at_if_current(stopped_until_, &honest_client::take_turn);
    return true;
}

void honest_client::take_turn() {
    turn_scheduled_ = false;
    in_turn_ = true;
    while (!stops_here()) {
        switch (next_) {
            case step::read_clock:
                reading_ = clock();
                next_ = step::receive;
                break;
            case step::receive:
                receive();
                break;
            case step::judge:
                judge();
                break;
            case step::output:
                output_ = claim_->output(clock());
                deadline_->offers(output_.size(), clock());
                next_ = output_.empty() ? step::settle : step::send;
                break;
            case step::send:
                send();
                break;
            case step::drain:
                drain();
                break;
            case step::settle:
                in_turn_ = false;
                settle();
                return;
        }
    }
}

void honest_client::receive() {
    std::array<std::byte, 64> buffer{};
    const std::size_t most = 1 + world_->random.below(buffer.size());
    const io_result got = stream_->read(std::span{buffer}.first(most));
    switch (got.status) {
        case io_status::done:
            took(std::span{buffer}.first(got.count));
            break;
        case io_status::would_block:
            next_ = step::judge;
            break;
        case io_status::unreadable:
            world_->log.fail(rule::records_intact, "client " + std::to_string(number_) +
                                                       " cannot open what the server sent");
        case io_status::alerted:
            record_->alert_read = true;
            [[fallthrough]];
        case io_status::eof:
        case io_status::reset:
        case io_status::timed_out:
            ended();
            break;
    }
}

// Whose claim was lost before has nothing to give up.
void honest_client::judge() {
    const bool was_lost = claim_->state() == detail::claim_state::lost;
    claim_->judge(reading_);
    if (!was_lost) {
        rules_->judged(number_, *record_, deadline_->passed(reading_),
                       claim_->state() == detail::claim_state::lost);
    }
    next_ = step::output;
}

void honest_client::took(std::span<const std::byte> bytes) {
    rules_->client_read(*record_, bytes);
    deadline_->reads(record_->answers_read());
    claim_->receive(bytes, reading_);
    tell();
    if (record_->error_read) {
        rules_->loser_stopped(number_, *record_, claim_->owns(clock()));
    }
}

// What the answer has changed, as far as it shows.
void honest_client::tell() {
    if (claim_->was_queued()) {
        world_->told.waits(link_->id(), world_->events.now());
    }
    if (at_ == phase::working) {
        world_->told.confirmed(link_->id(), believes_until(), world_->events.now());
    }
}

sim_time honest_client::believes_until() const {
    return clock_.when(claim_->confirmed_until()->time_since_epoch());
}

void honest_client::ended() {
    rules_->client_read_end(*record_, link_->troubled(), std::nullopt);
    claim_->close();
    rules_->loser_stopped(number_, *record_, claim_->owns(clock()));
    next_ = step::settle;
}

// A write failed: an ERROR may be there to be read before the connection is given up.
void honest_client::drain() {
    std::array<std::byte, 64> buffer{};
    const io_result got = stream_->read(buffer);
    if (got.status == io_status::done) {
        took(std::span{buffer}.first(got.count));
    } else {
        claim_->close();
        next_ = step::settle;
    }
}

void honest_client::send() {
    if (!record_->first_sent) {
        record_->first_sent = world_->events.now();
        world_->told.asks(link_->id(), lock_, lease_, world_->events.now());
    }
    const io_result did = stream_->write(output_);
    if (did.status != io_status::done && did.status != io_status::would_block) {
        next_ = step::drain;
        return;
    }
    wants_write_ = did.count < output_.size();
    claim_->transmitted(did.count);
    deadline_->hands_over(did.count);
    next_ = step::settle;
}

void honest_client::settle() {
    if (claim_->state() == detail::claim_state::lost) {
        lost();
        return;
    }
    if (claim_->state() == detail::claim_state::held && at_ == phase::claiming) {
        acquired();
    }
    arm_timer();
    on_ready(*link_);
}

void honest_client::arm_timer() {
    const auto wakeup = claim_->next_wakeup();
    if (!wakeup) {
        return;
    }
    const sim_time when = clock_.when(wakeup->time_since_epoch());
    if (when < timer_at_) {
        timer_at_ = when;
        at_if_current(when + world_->random.between(sim_time{0}, sim_time{200us}),
                      &honest_client::timer_fires);
    }
}

void honest_client::timer_fires() {
    timer_at_ = never;
    wake();
}

// ---- the owner's work

// The acquire returns: the deadline is compared before anything is believed.
void honest_client::acquired() {
    if (!claim_->owns(clock())) {
        return;  // the next turn says so
    }
    world_->log.note(self(), "owns lock {} with token {}", lock_, claim_->token()->value);
    world_->told.granted(link_->id(), claim_->token()->value, believes_until(),
                         world_->events.now());
    at_ = phase::working;
    served_ = served_ || calm_;
    served_in_quiet_ = served_in_quiet_ || began_quiet_;
    const sim_time now = world_->events.now();
    const sim_time hold = world_->random.spread(sim_time{1ms}, world_->plan.hold_max);
    at_if_current(now + hold, &honest_client::work_ends);
    for (std::uint64_t writes = world_->random.below(4); writes > 0; --writes) {
        at_if_current(now + world_->random.between(sim_time{0}, hold),
                      &honest_client::write_to_resource);
    }
}

// The check and the write are two things: a write that was right to send may arrive late.
void honest_client::write_to_resource() {
    if (at_ != phase::working || !claim_->owns(clock())) {
        return;
    }
    world_->told.acts(link_->id(), world_->events.now());
    const sim_time delay =
        world_->random.spread(world_->plan.delay_min, sim_time{world_->plan.lease_max});
    world_->events.in(delay, [checks = rules_, record = record_, token = claim_->token()->value] {
        checks->resource_written(*record, token);
    });
}

void honest_client::give_up_waiting() {
    if (at_ == phase::claiming && !calm_) {
        world_->log.note(self(), "stops waiting");
        leave();
    }
}

void honest_client::work_ends() {
    world_->log.note(self(), "releases lock {}", lock_);
    leave();
}

void honest_client::lost() {
    world_->log.note(self(), text_of(claim_->loss().kind), lock_);
    world_->told.loses(link_->id(), claim_->loss(), world_->events.now());
    ++world_->counts->losses;
    if (claim_->loss().kind == detail::loss_kind::protocol_violation) {
        world_->log.fail(
            rule::no_false_violation,
            "client " + std::to_string(number_) + " was told what the protocol does not allow");
    }
    if (began_quiet_) {
        world_->log.fail(rule::lost_without_cause,
                         "client " + std::to_string(number_) + " lost connection " +
                             std::to_string(link_->id()) + " after faults had stopped");
    }
    if (at_ == phase::claiming && is_transient(claim_->loss())) {
        refused_ = record_;
    }
    leave();
}

void honest_client::leave() {
    world_->told.ends(link_->id(), world_->events.now());
    stream_->close();
    link_ = nullptr;
    rest();
}

// ---- the outside

// A stopped process is not stopped further: it would never go on.
bool honest_client::stop_for(sim_time pause) {
    if (stopped()) {
        return false;
    }
    stopped_until_ = world_->events.now() + pause;
    if (link_ != nullptr) {
        world_->told.stops_for(link_->id(), world_->events.now(), stopped_until_);
    }
    world_->log.note(self(), "stopped for {} us", pause.count() / 1000);
    return true;
}

bool honest_client::crash() {
    const bool busy = at_ != phase::resting;
    world_->log.note(self(), "crashes");
    if (link_ != nullptr) {
        world_->told.ends(link_->id(), world_->events.now());
        link_->close(side::client);
        link_ = nullptr;
    }
    stopped_until_ = world_->events.now();
    refused_ = nullptr;
    rest();
    return busy;
}

bool honest_client::vanish() {
    const bool connected = link_ != nullptr;
    world_->log.note(self(), "vanishes");
    if (link_ != nullptr) {
        world_->told.vanishes(link_->id(), world_->events.now());
        link_->vanish(side::client, never);
        link_ = nullptr;
    }
    stopped_until_ = world_->events.now();
    refused_ = nullptr;
    rest();
    return connected;
}

void honest_client::calm_down(sim_time quiet_from) {
    calm_ = true;
    quiet_from_ = quiet_from;
    served_ = at_ == phase::working;
    if (at_ == phase::resting) {
        rest();
    }
}

}  // namespace monolock::simulation
