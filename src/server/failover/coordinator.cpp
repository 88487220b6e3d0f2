#include "server/failover/coordinator.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "config/duration.hpp"
#include "server/wall_clock.hpp"

namespace monolock::server {

namespace {

using coordination::role;
using coordination::time_point;
using telemetry::log_level;

}  // namespace

coordinator::coordinator(settings wishes, shard_surroundings& around, mandate& over,
                         role_orders orders)
    : around_{&around},
      mandate_{&over},
      orders_{std::move(orders)},
      ttl_{wishes.role.ttl},
      delay_is_fixed_{wishes.role.grant_delay.fixed.has_value()},
      gateway_{std::move(wishes.etcd)},
      machine_{wishes.role},
      survey_{around, [this] { gateway_.wake(); }},
      journal_{std::move(wishes.role.name),
               [this](log_level level, std::string_view message,
                      std::initializer_list<telemetry::log_field> fields) {
                   around_->log->write(level, message, fields);
               }} {
    around_->tokens.close();
    around_->tokens.when_refused([this] { gateway_.wake(); });
}

coordinator::~coordinator() {
    if (thread_.joinable()) {
        wish(&coordinator::stopping_);
        thread_.join();
    }
}

void coordinator::start() {
    thread_ = std::thread{[this] { run(); }};
    ::pthread_setname_np(thread_.native_handle(), "coordinator");
}

// For the next turn of its thread.
void coordinator::wish(bool coordinator::*what) {
    {
        const std::scoped_lock hold{mutex_};
        this->*what = true;
    }
    gateway_.wake();
}

void coordinator::sessions_ended() {
    wish(&coordinator::sessions_ended_);
}

void coordinator::sessions_abandoned() {
    wish(&coordinator::sessions_abandoned_);
}

void coordinator::withdraw() {
    wish(&coordinator::withdraw_);
}

void coordinator::shut_down(std::string why) {
    {
        const std::scoped_lock hold{mutex_};
        shut_down_ = true;
        why_ = std::move(why);
    }
    gateway_.wake();
}

role_status coordinator::status() const {
    const std::scoped_lock hold{mutex_};
    return status_;
}

void coordinator::run() {
    while (!finished_) {
        turn();
    }
}

// The order is the role machine's. What it decided about the mandate is in force before anybody
// hears of it.
void coordinator::turn() {
    const std::vector<etcd::news> arrived = gateway_.poll(next_turn());
    const time_point now = posix::boot_now();
    obey_wishes(now);
    for (const etcd::news& each : arrived) {
        if (const auto* const answer = std::get_if<etcd::answered>(&each)) {
            machine_.take(answer->to, answer->what, now);
        } else {
            machine_.take(std::get<coordination::watch_event>(each), now);
        }
    }
    survey_leases(now);
    ask_store();  // which judges the time, too: what that decides must not wait for another turn
    publish(posix::boot_now());
    carry_out_events();
    follow_watch();
}

void coordinator::obey_wishes(time_point now) {
    const std::scoped_lock hold{mutex_};
    if (std::exchange(sessions_ended_, false)) {
        machine_.sessions_ended(now);
    }
    if (std::exchange(withdraw_, false)) {
        machine_.withdraw(now);
    }
    if (std::exchange(shut_down_, false)) {
        machine_.shut_down(now, why_);
    }
    if (std::exchange(sessions_abandoned_, false)) {
        machine_.sessions_abandoned();
    }
    finished_ = finished_ || stopping_;
}

void coordinator::ask_store() {
    while (const auto due = machine_.next(posix::boot_now(), position())) {
        gateway_.send(due->is, due->what);
    }
}

void coordinator::follow_watch() {
    const auto& order = machine_.watch();
    if (!order) {
        gateway_.stop_watching();
        watch_number_ = 0;
    } else if (order->number != watch_number_) {
        gateway_.watch(order->from);
        watch_number_ = order->number;
    }
}

void coordinator::carry_out_events() {
    while (const auto event = machine_.next_event()) {
        if (std::holds_alternative<coordination::open_now>(*event)) {
            around_->log->write(
                log_level::info, "this server is active",
                {{.key = "term", .value = status_.term.value_or(coordination::term{}).value}});
            tell_grant_delay();
            orders_.open();
        } else if (std::holds_alternative<coordination::step_down_now>(*event)) {
            around_->log->write(log_level::warn, "this server is active no more",
                                {{.key = "reason", .value = machine_.last_loss()}});
            orders_.step_down();
        } else {
            finished_ = true;
            orders_.retired();
        }
    }
}

void coordinator::publish(time_point now) {
    const bool active = machine_.state() == role::active;
    if (active) {
        mandate_->extend_to(machine_.deadline());  // first: grants that are retried ask for it
        publish_limits(now);
    } else {
        mandate_->end();
        around_->tokens.close();
        granting_ = false;
        limits_ = {};
        survey_.forget();
    }
    role_status fresh{.role = machine_.state(),
                      .term = machine_.current_term(),
                      .active_server = machine_.holder().value_or(""),
                      .holder_has_renewed = machine_.holder_has_renewed(),
                      .opens_in = machine_.opens_in(now),
                      .delays_grants = active && !granting_,
                      .failovers = machine_.failovers(),
                      .etcd_errors = machine_.store_errors(),
                      .last_loss = machine_.last_loss(),
                      .last_error = machine_.last_error()};
    journal_.tell(fresh, now);
    const std::scoped_lock hold{mutex_};
    status_ = std::move(fresh);
}

// Grants that were refused are tried again by every shard when more is allowed than before.
void coordinator::publish_limits(time_point now) {
    const coordination::token_range range = machine_.tokens();
    // A delay of a fixed length needs no record of leases, and so no claim waits for it.
    const grant_limits fresh{
        .ceiling = range.ceiling,
        .lease_max = delay_is_fixed_ ? grant_limits{}.lease_max : machine_.lease_limit()};
    bool more = std::exchange(mandate_missed_, false);
    if (fresh != limits_) {
        if (fresh.lease_max != limits_.lease_max) {
            survey_.forget();  // it asked under another limit
        }
        around_->tokens.start_at(range.first);
        around_->tokens.limit(fresh);
        limits_ = fresh;
        more = true;
    }
    if (!granting_ && now >= machine_.grants_from()) {
        around_->tokens.open();
        granting_ = true;
        more = true;
        if (std::exchange(delay_told_, false)) {
            around_->log->write(log_level::info, grant_delay_over);
        }
    }
    if (more && granting_) {
        for (const auto& each : around_->shards) {
            each->retry_grants();
        }
    }
}

void coordinator::tell_grant_delay() {
    const auto left = machine_.grants_from() - posix::boot_now();
    delay_told_ = !granting_ && left > core::nanoseconds{0};
    if (delay_told_) {
        around_->log->write(log_level::info, grant_delay_begins,
                            {{.key = "grant_delay",
                              .value = config::format_duration(
                                  std::chrono::ceil<std::chrono::milliseconds>(left))}});
    }
}

void coordinator::survey_leases(time_point now) {
    if (machine_.state() != role::active) {
        return;
    }
    const token_counter::demand demand = around_->tokens.take_demand();
    mandate_missed_ = mandate_missed_ || demand.mandate;
    wanted_ = std::max(wanted_, demand.lease);
    if (wanted_ <= limits_.lease_max) {
        wanted_ = {};  // granted meanwhile, or about to be
    }
    if (auto report = survey_.take()) {
        report->wanted = wanted_;
        machine_.report(*report, now);
    } else if (demand.lease.count() > 0) {
        // It says nothing of what anybody has, so it must not wait for a shard that is slow.
        machine_.report({.adopted = std::chrono::milliseconds::max(), .wanted = wanted_}, now);
    }
    if (now >= survey_at_) {
        survey_.begin(limits_.lease_max);
        survey_at_ = now + coordination::nanoseconds{ttl_} / 4;
    }
}

time_point coordinator::next_turn() const {
    time_point next = machine_.next_wakeup().value_or(time_point::max());
    if (machine_.state() == role::active) {
        next = std::min(next, survey_at_);
        if (!granting_) {
            next = std::min(next, machine_.grants_from());
        }
    }
    return next;
}

coordination::token_position coordinator::position() const {
    return {.last = around_->tokens.last(), .unix_ms = unix_milliseconds()};
}

}  // namespace monolock::server
