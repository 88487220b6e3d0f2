#include "simulation/failover/server.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "coordination/token_window.hpp"
#include "simulation/failover/cases.hpp"

namespace monolock::simulation::failover {

using namespace std::chrono_literals;
using coordination::answer;
using coordination::failed;
using coordination::grant_lease;
using coordination::keep_lease_alive;
using coordination::lease_kept;
using coordination::next_token;
using coordination::open_now;
using coordination::outgoing;
using coordination::request;
using coordination::retired_now;
using coordination::role;
using coordination::role_event;
using coordination::role_machine;
using coordination::role_options;
using coordination::step_down_now;
using coordination::ticket;
using coordination::token_position;
using coordination::token_range;
using coordination::watch_event;

namespace {

constexpr std::int64_t wall_ms_at_start = 1'700'000'000'000;

}  // namespace

server::server(context& world, store& etcd, store_path& path, books& told, pier& shore, int number)
    : world_{&world},
      etcd_{&etcd},
      path_{&path},
      told_{&told},
      shore_{&shore},
      number_{number},
      clock_{world.draw_clock()} {}

// ---- lives

void server::start() {
    ++epoch_;
    const seconds ttl = world_->plan.ttl.at(static_cast<std::size_t>(number_));
    role_options options{.name = std::to_string(number_), .ttl = ttl, .grant_delay = {}};
    options.grant_delay.fixed =
        world_->plan.automatic ? std::nullopt : std::optional{world_->plan.fixed_delay};
    options.grant_delay.covered_max = world_->plan.covered_max;
    machine_ = std::make_unique<role_machine>(options);
    inbox_.clear();
    accepted_.clear();
    calls_.clear();
    sessions_.clear();
    locks_.clear();
    watch_number_ = 0;
    in_turn_ = false;
    armed_ = never;
    open_ = false;
    shut_down_ = false;
    withdraw_ = false;
    withdrawn_ = false;
    last_token_ = 0;
    told_->process_starts(number_, ttl);
    wake(world_->events.now());
}

void server::process_ends(sim_time downtime) {
    ++epoch_;
    machine_.reset();
    etcd_->end_watch(number_);
    inbox_.clear();
    sessions_.clear();
    locks_.clear();
    accepted_.clear();
    open_ = false;
    world_->events.in(downtime, [this, epoch = epoch_] {
        if (epoch == epoch_) {
            start();
        }
    });
}

bool server::crash(bool told, sim_time downtime) {
    if (!machine_) {
        return false;
    }
    if (told) {
        turn_away(reply::reset);
    }
    process_ends(downtime);
    return true;
}

bool server::pause(sim_time how_long) {
    const sim_time before =
        std::exchange(paused_until_, std::max(paused_until_, world_->events.now() + how_long));
    return machine_ != nullptr && paused_until_ > before;
}

// Half of the times after a delay.
bool server::shut_down() {
    const bool is_news = machine_ && !withdrawn_ && !withdraw_ && !shut_down_;
    const bool delayed = world_->random.chance(500'000);
    (delayed ? withdraw_ : shut_down_) = true;
    wake(world_->events.now());
    if (delayed) {
        world_->events.in(world_->random.spread(sim_time{10ms}, sim_time{5s}),
                          [this, epoch = epoch_] {
                              if (epoch == epoch_) {
                                  shut_down_ = true;
                                  wake(world_->events.now());
                              }
                          });
    }
    return is_news;
}

bool server::cut_clients() {
    bool any = false;
    for (const connection_ptr& link : accepted_) {
        any = !std::exchange(link->cut, true) || any;
    }
    return any;
}

// It is active, and not in the midst of something.
bool server::at_rest() const {
    return is_active() && !in_turn_ && world_->events.now() >= paused_until_;
}

bool server::force(const connection_ptr& link) {
    const auto at = sessions_.find(link->id);
    if (!at_rest() || at == sessions_.end() || !at->second->owns) {
        return false;
    }
    link->forced = true;
    told_->answers(number_, clock());
    if (!world_->random.chance(world_->plan.error_lost)) {
        shore_->send(link, reply::error, 0);
    }
    end(*link);
    return true;
}

bool server::burst() {
    if (!at_rest() || at(clock()) < machine_->grants_from()) {
        return false;
    }
    const token_range range = machine_->tokens();
    const std::uint64_t least = std::max(range.first, last_token_ + 1);
    if (least >= range.ceiling) {
        return false;
    }
    const bool all = world_->random.chance(500'000);
    last_token_ = all ? range.ceiling - 1 : least + world_->random.below(range.ceiling - least);
    told_->grants(last_token_);
    return true;
}

bool server::is_active() const {
    return machine_ && open_ && may_answer(clock());
}

// ---- turns

void server::wake(sim_time when) {
    if (when >= armed_) {
        return;
    }
    armed_ = when;
    world_->events.at(when, [this, when, epoch = epoch_] {
        if (epoch == epoch_ && armed_ == when) {
            armed_ = never;
            turn();
        }
    });
}

void server::post(message what, sim_time delay) {
    world_->events.in(delay, [this, epoch = epoch_, what = std::move(what)] {
        if (epoch == epoch_) {
            inbox_.push_back(what);
            wake(world_->events.now());
        }
    });
}

// Whether the process died meanwhile.
bool server::stopped(std::uint64_t epoch) {
    if (world_->random.chance(world_->plan.stops)) {
        ++world_->counts->stops;
        pause(world_->random.spread(sim_time{1ms}, world_->plan.pause_max));
        world_->log.note({"server", number_}, "is stopped within a turn");
        while (world_->events.run_next(paused_until_)) {
        }
    }
    return epoch != epoch_;
}

void server::turn() {
    if (!machine_ || in_turn_) {
        return;
    }
    if (world_->events.now() < paused_until_) {
        wake(paused_until_);
        return;
    }
    in_turn_ = true;
    const std::uint64_t epoch = epoch_;
    // From before the receive that finds nothing: silence is judged by this.
    const nanoseconds judged = clock();
    while (!inbox_.empty()) {
        if (stopped(epoch)) {
            return;
        }
        const message what = std::move(inbox_.front());
        inbox_.pop_front();
        const nanoseconds reading = clock();
        take(what, reading);
    }
    give_up_calls(judged);
    if (open_) {
        expire(judged);
    }
    drive();
    if (epoch == epoch_) {
        in_turn_ = false;
        next_turn();
    }
}

void server::take(const message& what, nanoseconds reading) {
    std::visit(cases{[&](const store_answer& it) { take_answer(it, reading); },
                     [&](const watch_event& it) {
                         machine_->take(it, at(reading));
                         called(reading);
                     },
                     [&](const client_call& it) { handle(it, reading); },
                     [&](const survey_question& it) { adopt(it, reading); },
                     [&](const survey_answer& it) {
                         if (it.activity == activity_) {
                             surveying_ = false;
                             machine_->report(it.says, at(reading));
                             called(reading);
                         }
                     },
                     [&](const sessions_gone&) {
                         sessions_.clear();
                         locks_.clear();
                         machine_->sessions_ended(at(reading));
                     }},
               what);
}

// The machine has been called with that reading.
void server::called(nanoseconds reading) const {
    if (machine_->state() == role::active) {
        told_->is_active(number_, reading);
        if (at(reading) >= machine_->deadline()) {
            world_->fail(rule::judged_first, "server " + std::to_string(number_));
        }
    }
}

void server::drive() {
    machine_->judge(at(clock()));
    called(clock());
    if (std::exchange(withdraw_, false)) {
        withdrawn_ = true;
        machine_->withdraw(at(clock()));
    }
    if (std::exchange(shut_down_, false)) {
        withdrawn_ = true;
        machine_->shut_down(at(clock()));
    }
    survey();
    const std::uint64_t epoch = epoch_;
    for (;;) {
        const nanoseconds reading = clock();
        const auto next = machine_->next(at(reading), position());
        if (!next) {
            break;
        }
        send_out(*next, reading);
    }
    while (const auto event = machine_->next_event()) {
        obey(*event);
        if (epoch != epoch_) {
            return;  // it has retired
        }
    }
    follow_watch();
    promote_all();
}

void server::next_turn() {
    const auto due = machine_->next_wakeup();
    if (due && due->time_since_epoch() <= clock()) {
        world_->fail(rule::no_busy_loop, "a wake-up at which there is nothing to do");
    }
    nanoseconds first = due ? due->time_since_epoch() : clock() + 1h;
    for (const auto& [ticket, until] : calls_) {
        first = std::min(first, until);
    }
    if (open_) {
        for (const auto& [id, who] : sessions_) {
            first = std::min(first, who->last_seen + nanoseconds{who->link->lease} + 1ns);
        }
        const nanoseconds grants_from = machine_->grants_from().time_since_epoch();
        if (grants_from > clock()) {
            first = std::min(first, grants_from);
        }
        first = surveying_ ? first : std::min(first, survey_at_);
    }
    wake(clock_.when(std::max(first, clock() + 1us)));
}

void server::obey(const role_event& what) {
    std::visit(cases{[this](const open_now&) { opened(); },
                     [this](const step_down_now& it) {
                         ++world_->counts->losses.at(static_cast<std::size_t>(it.why));
                         world_->log.note({"server", number_}, "steps down, why {}",
                                          static_cast<int>(it.why));
                         told_->steps_down(number_);
                         turn_away(reply::error);
                         open_ = false;
                         post(sessions_gone{},
                              world_->random.spread(sim_time{100us}, sim_time{2s}));
                     },
                     [this](const retired_now&) {
                         world_->log.note({"server", number_}, "has retired");
                         turn_away(reply::reset);
                         process_ends(world_->random.spread(sim_time{10ms}, sim_time{5s}));
                     }},
               what);
}

void server::opened() {
    told_->opens(number_);
    world_->log.note({"server", number_}, "opens in term {}, first token {}, grants in {} us",
                     told_->term_of(number_), machine_->tokens().first,
                     (machine_->grants_from() - at(clock())).count() / 1000);
    ++world_->counts->failovers;
    open_ = true;
    ++activity_;
    locks_.clear();
    lease_limit_ = machine_->lease_limit();
    longest_ = milliseconds{0};
    reported_ = milliseconds{0};
    surveying_ = false;
    survey_at_ = clock();
}

// ---- the store

token_position server::position() const {
    const std::int64_t wall = wall_ms_at_start + clock().count() / 1'000'000 + wall_offset_ms_;
    return {.last = last_token_,
            .unix_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(wall, 0))};
}

void server::send_out(const outgoing& what, nanoseconds reading) {
    told_->requests(number_, what.is, what.what, reading, sessions_.size());
    if (withdrawn_ && std::holds_alternative<coordination::campaign>(what.what)) {
        world_->fail(rule::leaves_for_good, "server " + std::to_string(number_));
    }
    const nanoseconds patience =
        nanoseconds{world_->plan.ttl.at(static_cast<std::size_t>(number_))} / 8;
    calls_.emplace(what.is.value, reading + patience);
    world_->log.note({"server", number_}, "asks, ticket {}, kind {}", what.is.value,
                     what.what.index());
    carry(what, patience);
}

sim_time server::store_delay() {
    const bool slow = path_->slow.meets_call(*world_);
    const sim_time least{50us};
    const seconds ttl = world_->plan.ttl.at(static_cast<std::size_t>(number_));
    return world_->random.between(least, slow ? sim_time{ttl} / 10 : world_->plan.store_delay_max);
}

void server::carry(const outgoing& what, sim_time patience) {
    if (path_->refuses.meets_call(*world_)) {
        post(store_answer{what.is, failed{"refused"}}, 100us);
        return;
    }
    if (world_->random.chance(world_->plan.request_late)) {
        carry_out_late(what.what, patience);
        return;
    }
    if (path_->silent.meets_call(*world_) ||
        path_->mute.at(static_cast<std::size_t>(number_)).meets_call(*world_) ||
        world_->random.chance(world_->plan.request_lost)) {
        return;
    }
    if (std::holds_alternative<keep_lease_alive>(what.what) &&
        world_->random.chance(world_->plan.kept_blindly)) {
        post(store_answer{what.is, lease_kept{world_->plan.ttl_min}}, store_delay());
        return;
    }
    world_->events.in(store_delay(), [this, what, epoch = epoch_] {
        if (epoch == epoch_) {
            comes_through(what);
        } else {
            static_cast<void>(etcd_->carry_out(what.what));
        }
    });
}

void server::carry_out_late(const request& what, sim_time patience) {
    const sim_time late = world_->random.between(patience, patience + world_->plan.late_max);
    world_->events.in(late, [this, what] {
        ++world_->counts->applied_late;
        static_cast<void>(etcd_->carry_out(what));
    });
}

void server::comes_through(const outgoing& what) {
    answer says = etcd_->carry_out(what.what);
    const bool repeats = !std::holds_alternative<grant_lease>(what.what) &&
                         world_->random.chance(world_->plan.request_twice);
    if (repeats) {
        says = etcd_->carry_out(what.what);
    }
    if (path_->silent.meets_call(*world_) ||
        path_->deaf.at(static_cast<std::size_t>(number_)).meets_call(*world_) ||
        world_->random.chance(world_->plan.answer_lost)) {
        return;
    }
    const auto* const won = std::get_if<coordination::campaigned>(&says);
    if (won != nullptr && won->won && path_->unreadable.meets_call(*world_)) {
        says = failed{"what is there is no record of ours"};
    }
    post(store_answer{what.is, says}, store_delay());
}

void server::take_answer(const store_answer& what, nanoseconds reading) {
    if (calls_.erase(what.to.value) == 0) {
        return;  // given up before
    }
    told_->is_answered(number_, what.to, what.what, reading);
    machine_->take(what.to, what.what, at(reading));
    called(reading);
}

void server::give_up_calls(nanoseconds judged) {
    while (true) {
        const auto over = std::find_if(calls_.begin(), calls_.end(), [judged](const auto& call) {
            return call.second <= judged;
        });
        if (over == calls_.end()) {
            return;
        }
        const ticket to{over->first};
        calls_.erase(over);
        ++world_->counts->unanswered;
        const answer none = failed{"no answer in time"};
        const nanoseconds reading = clock();
        told_->is_answered(number_, to, none, reading);
        machine_->take(to, none, at(reading));
        called(reading);
    }
}

void server::follow_watch() {
    const auto& order = machine_->watch();
    if (!order || order->number == watch_number_) {
        return;
    }
    watch_number_ = order->number;
    etcd_->watch(number_, order->from, [this, epoch = epoch_](const watch_event& what) {
        if (epoch == epoch_) {
            inbox_.emplace_back(what);
            wake(world_->events.now());
        }
    });
}

// ---- the shard and its surveys

void server::survey() {
    if (!open_ || machine_->state() != role::active || surveying_) {
        return;
    }
    const nanoseconds now = clock();
    const bool news = machine_->lease_limit() != lease_limit_ || wanted() != reported_;
    if (!news && now < survey_at_) {
        return;
    }
    surveying_ = true;
    survey_at_ = now + nanoseconds{world_->plan.ttl.at(static_cast<std::size_t>(number_))} / 4;
    post(survey_question{activity_, machine_->lease_limit()},
         world_->random.spread(sim_time{1us}, world_->plan.survey_delay_max));
}

void server::adopt(const survey_question& what, nanoseconds reading) {
    if (what.activity != activity_ || !open_) {
        return;
    }
    lease_limit_ = what.limit;
    for (const auto& [name, lock] : locks_) {
        if (lock.owner != nullptr) {
            longest_ = std::max(longest_, lock.owner->link->lease);
        }
    }
    if (may_answer(reading)) {
        promote_all();
    }
    reported_ = wanted();
    post(survey_answer{activity_,
                       {.adopted = lease_limit_, .longest = longest_, .wanted = reported_}},
         world_->random.spread(sim_time{1us}, world_->plan.survey_delay_max));
    longest_ = milliseconds{0};
}

milliseconds server::wanted() const {
    milliseconds most{0};
    for (const auto& [name, lock] : locks_) {
        if (lock.owner == nullptr && !lock.queue.empty()) {
            const milliseconds lease = lock.queue.front()->link->lease;
            most = std::max(most, lease > lease_limit_ ? lease : milliseconds{0});
        }
    }
    return most;
}

bool server::may_answer(nanoseconds reading) const {
    return open_ && at(reading) < machine_->deadline();
}

bool server::accepts(const connection_ptr& link) {
    if (!machine_ || !open_) {
        return false;
    }
    accepted_.push_back(link);
    return true;
}

void server::arrives(const connection_ptr& link, call what) {
    if (machine_ && std::find(accepted_.begin(), accepted_.end(), link) != accepted_.end()) {
        inbox_.emplace_back(client_call{link, what});
        wake(world_->events.now());
    }
}

void server::handle(const client_call& what, nanoseconds reading) {
    if (!may_answer(reading)) {
        ++world_->counts->refused;
        return;
    }
    if (what.what == call::close) {
        end(*what.link);
        return;
    }
    if (what.what == call::acquire) {
        admit(what.link, reading);
        return;
    }
    const auto at = sessions_.find(what.link->id);
    if (at != sessions_.end()) {
        at->second->last_seen = reading;
        tell(*at->second, at->second->owns ? reply::acquired : reply::waiting);
    }
}

void server::admit(const connection_ptr& link, nanoseconds reading) {
    auto& who = sessions_[link->id];
    who = std::make_unique<session>(session{.link = link, .last_seen = reading});
    named_lock& lock = locks_[link->lock];
    if (lock.owner == nullptr && lock.queue.empty() && grant(*who, reply::acquired)) {
        lock.owner = who.get();
        return;
    }
    lock.queue.push_back(who.get());
    tell(*who, reply::waiting);
}

void server::tell(const session& who, reply what) {
    told_->answers(number_, clock());
    shore_->send(who.link, what, told_->term_of(number_));
}

bool server::grant(session& who, reply how) {
    const nanoseconds now = clock();
    if (at(now) < machine_->grants_from()) {
        return false;
    }
    if (who.link->lease > lease_limit_) {
        ++world_->counts->leases_awaited;
        return false;
    }
    const auto token = next_token(machine_->tokens(), position());
    if (!token) {
        ++world_->counts->raises_awaited;
        return false;
    }
    last_token_ = *token;
    longest_ = std::max(longest_, who.link->lease);
    who.owns = true;
    world_->log.note({"server", number_}, "grants lock {} to client {}, token {}", who.link->lock,
                     who.link->client, *token);
    told_->grants(number_, *who.link, *token, now);
    tell(who, how);
    return true;
}

void server::end(const connection& link) {
    const auto at = sessions_.find(link.id);
    if (at == sessions_.end()) {
        return;
    }
    session* const who = at->second.get();
    const int name = link.lock;
    named_lock& lock = locks_[name];
    if (lock.owner == who) {
        longest_ = std::max(longest_, link.lease);  // it was one since the last survey
        lock.owner = nullptr;
    }
    std::erase(lock.queue, who);
    std::erase_if(accepted_, [&link](const connection_ptr& each) { return each.get() == &link; });
    sessions_.erase(at);
    promote(name);
}

void server::promote(int lock_number) {
    named_lock& lock = locks_[lock_number];
    if (lock.owner == nullptr && !lock.queue.empty() && may_answer(clock()) &&
        grant(*lock.queue.front(), reply::push)) {
        lock.owner = lock.queue.front();
        lock.queue.pop_front();
    }
}

void server::promote_all() {
    for (int lock = 0; open_ && lock < world_->plan.locks; ++lock) {
        promote(lock);
    }
}

void server::expire(nanoseconds judged) {
    std::vector<connection_ptr> over;
    for (const auto& [id, who] : sessions_) {
        if (judged - who->last_seen > nanoseconds{who->link->lease}) {
            over.push_back(who->link);
        }
    }
    for (const connection_ptr& link : over) {
        shore_->send(link, reply::reset, 0);
        end(*link);
    }
}

// Whoever is connected. The sessions stay until they are gone.
void server::turn_away(reply how) {
    for (const connection_ptr& link : accepted_) {
        if (!world_->random.chance(world_->plan.error_lost)) {
            shore_->send(link, how, 0);
        }
    }
    accepted_.clear();
}

}  // namespace monolock::simulation::failover
