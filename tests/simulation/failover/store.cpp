#include "simulation/failover/store.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "simulation/failover/cases.hpp"

namespace monolock::simulation::failover {

using coordination::active_deleted;
using coordination::active_entry;
using coordination::active_put;
using coordination::active_record;
using coordination::answer;
using coordination::campaign;
using coordination::campaigned;
using coordination::failed;
using coordination::grant_lease;
using coordination::keep_lease_alive;
using coordination::lease_granted;
using coordination::lease_id;
using coordination::lease_kept;
using coordination::lease_revoked;
using coordination::look;
using coordination::renew;
using coordination::renewed;
using coordination::request;
using coordination::resign;
using coordination::resigned;
using coordination::revision;
using coordination::revoke_lease;
using coordination::seen;
using coordination::state_record;
using coordination::term;
using coordination::watch_broken;
using coordination::watch_event;

namespace {

constexpr actor me{"store"};

}  // namespace

answer store::carry_out(const request& what) {
    return std::visit(cases{[this](const grant_lease& it) { return grant(it); },
                            [this](const keep_lease_alive& it) { return keep(it); },
                            [this](const revoke_lease& it) { return revoke(it); },
                            [this](const look&) -> answer {
                                return seen{active_, {revision_}};
                            },
                            [this](const campaign& it) { return run_campaign(it); },
                            [this](const renew& it) { return run_renewal(it); },
                            [this](const resign& it) { return run_resignation(it); }},
                      what);
}

// ---- leases

answer store::grant(const grant_lease& what) {
    const std::int64_t id = ++leases_made_;
    lease& made = leases_[id];
    made.ttl = std::max(what.ttl, world_->plan.ttl_min);
    refresh(id, made);
    return lease_granted{{id}, made.ttl};
}

answer store::keep(const keep_lease_alive& what) {
    const auto at = leases_.find(what.lease.value);
    if (at == leases_.end()) {
        return lease_kept{std::chrono::seconds{0}};
    }
    refresh(at->first, at->second);
    return lease_kept{at->second.ttl};
}

answer store::revoke(const revoke_lease& what) {
    end_lease(what.lease.value);
    return lease_revoked{};
}

void store::refresh(std::int64_t id, lease& which) {
    context& world = *world_;
    sim_time lasts = which.ttl;
    if (world.random.chance(world.plan.lease_short)) {
        lasts = world.random.between(sim_time{1}, lasts);
    } else if (world.random.chance(world.plan.lease_long)) {
        lasts = world.random.between(lasts, world.plan.lease_long_max * lasts);
    }
    which.ends = world.events.now() + lasts;
    world.events.at(which.ends, [this, id] {
        const auto at = leases_.find(id);
        if (at != leases_.end() && at->second.ends <= world_->events.now()) {
            end_lease(id);
        }
    });
}

void store::end_lease(std::int64_t id) {
    if (leases_.erase(id) > 0) {
        world_->log.note(me, "lease {} has ended", id);
        if (active_ && under_.value == id) {
            remove_active();
        }
    }
}

sim_time store::leases_end() const {
    sim_time last = world_->events.now();
    for (const auto& [id, each] : leases_) {
        last = std::max(last, each.ends);
    }
    return last;
}

// ---- the three transactions of the chain

bool store::holds(term mine, revision known) const {
    return active_ && active_->created == mine && active_->modified == known;
}

answer store::run_campaign(const campaign& what) {
    ++world_->counts->transactions;
    if (active_) {
        return campaigned{.won = false, .at = {}, .state = {}, .active = active_};
    }
    if (!leases_.contains(what.lease.value)) {
        return failed{"requested lease not found"};
    }
    put_active(what.value, what.lease);
    return campaigned{.won = true, .at = active_->created, .state = state_, .active = {}};
}

answer store::run_renewal(const renew& what) {
    ++world_->counts->transactions;
    if (!holds(what.mine, what.known)) {
        if (active_ && active_->created == what.mine) {
            ++world_->counts->recovered;
        }
        return renewed{.done = false, .at = {}, .active = active_};
    }
    if (!leases_.contains(what.lease.value)) {
        return failed{"requested lease not found"};
    }
    put_active(what.value, what.lease);
    if (what.state) {
        put_state(*what.state);
    }
    return renewed{.done = true, .at = active_->modified, .active = {}};
}

answer store::run_resignation(const resign& what) {
    ++world_->counts->transactions;
    if (!holds(what.mine, what.known)) {
        return resigned{.done = false, .active = active_};
    }
    put_state(what.state);
    remove_active();
    return resigned{.done = true, .active = {}};
}

void store::put_active(const active_record& value, lease_id under) {
    ++revision_;
    const term created = active_ ? active_->created : term{revision_};
    active_ = active_entry{.value = value, .created = created, .modified = {revision_}};
    under_ = under;
    world_->log.note(me, "active is put: term {}, sequence {}, revision {}", created.value,
                     value.sequence, revision_);
    happened(active_put{*active_});
}

void store::put_state(const state_record& value) {
    told_(state_, value);
    if (state_ && value.longest_lease < state_->longest_lease) {
        ++world_->counts->lowered;
    }
    state_ = value;
    world_->log.note(me, "state is put: ceiling {}, longest lease {} ms, resigned {}",
                     value.ceiling, value.longest_lease.count(), value.resigned ? 1 : 0);
}

void store::remove_active() {
    ++revision_;
    active_.reset();
    world_->log.note(me, "active is gone, revision {}", revision_);
    happened(active_deleted{{revision_}});
}

// ---- by hand

void store::revoke_by_hand() {
    end_lease(under_.value);
}

void store::delete_by_hand() {
    remove_active();
}

void store::touch_by_hand() {
    put_active(active_->value, under_);
}

// ---- the watch

void store::happened(const watch_event& what) {
    history_.emplace_back(revision_, what);
    for (auto& [server, who] : watchers_) {
        tell(server, who, what);
    }
}

void store::tell(int server, watcher& who, const watch_event& what) {
    if (who.silent) {
        return;
    }
    const sim_time delay = world_->random.between(sim_time{50'000}, world_->plan.watch_delay_max);
    who.free_at = std::max(who.free_at, world_->events.now() + delay);
    world_->events.at(who.free_at, [this, server, number = who.number, what] {
        const auto at = watchers_.find(server);
        if (at != watchers_.end() && at->second.number == number) {
            const listener hears = at->second.hears;
            if (std::holds_alternative<watch_broken>(what)) {
                watchers_.erase(at);
            }
            hears(what);
        }
    });
}

void store::watch(int server, revision from, listener hears) {
    watcher& who = watchers_[server];
    who = {.number = ++watches_, .hears = std::move(hears)};
    for (const auto& [when, what] : history_) {
        if (when >= from.value) {
            tell(server, who, what);
        }
    }
}

bool store::break_watch(int server) {
    const auto at = watchers_.find(server);
    if (at == watchers_.end() || at->second.silent) {
        return false;
    }
    tell(server, at->second, watch_broken{"it broke"});
    return true;
}

bool store::silence_watch(int server) {
    const auto at = watchers_.find(server);
    return at != watchers_.end() && !std::exchange(at->second.silent, true);
}

}  // namespace monolock::simulation::failover
