#include "simulation/operator_desk.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "simulation/server_shard.hpp"

namespace monolock::simulation {

namespace {

constexpr actor operator_actor{"operator"};

enum class phase : std::uint8_t { asked, begun, given_up };

std::uint32_t id_of(const core::session& who) {
    return static_cast<std::uint32_t>(who.id().value);
}

listed_lock view_of(const core::named_lock& lock) {
    listed_lock made{.name = lock.name};
    if (lock.owner != nullptr) {
        made.owner = id_of(*lock.owner);
        made.token = lock.owner->token().value;
    }
    for (const core::session& waiter : lock.waiters) {
        made.waiters.push_back(id_of(waiter));
    }
    return made;
}

}  // namespace

// A look at every lock of every shard, a slice in each turn, as src/server/admin/survey.cpp does
// it. The shards answer when they come to it; only when all have is there a listing.
struct operator_desk::survey {
    struct part {
        std::size_t place = 0;  // those below it have not been looked at
        sim_time began{0};
        std::vector<listed_lock> found;
    };
    std::vector<part> parts;  // by shard
    std::size_t missing = 0;
};

void operator_desk::ask(server_shard& of, finder find) {
    const auto now = std::make_shared<phase>(phase::asked);
    of.post(server_shard::question{[now, find = std::move(find)](server_shard& shard) {
        if (*now == phase::given_up) {
            return;
        }
        *now = phase::begun;
        find(shard);
    }});
    world_->events.in(rules::operator_patience, [world = world_, now] {
        if (*now == phase::asked) {
            *now = phase::given_up;
            ++world->counts->operator_gave_up;
        }
    });
}

// ---- the listing

void operator_desk::list(server_process& of) {
    const auto by = std::make_shared<survey>();
    by->parts.resize(of.shards().size());
    by->missing = by->parts.size();
    for (const auto& shard : of.shards()) {
        ask(*shard, [this, by](server_shard& on) {
            survey::part& mine = by->parts[static_cast<std::size_t>(on.number())];
            mine.place = on.engine().table().lock_count();
            mine.began = world_->events.now();
            slice(on, by);
        });
    }
}

void operator_desk::slice(server_shard& of, const std::shared_ptr<survey>& by) {
    survey::part& mine = by->parts[static_cast<std::size_t>(of.number())];
    const core::lock_table& table = of.engine().table();
    mine.place = std::min(mine.place, table.lock_count());
    for (std::int64_t left = world_->random.between(1, 3); left > 0 && mine.place > 0; --left) {
        mine.found.push_back(view_of(table.at(--mine.place)));
        rules_->listed(mine.found.back());
    }
    if (mine.place > 0) {
        of.post(server_shard::question{[this, by](server_shard& on) { slice(on, by); }});
        return;
    }
    rules_->listing_done(of.number(), mine.began, mine.found);
    if (--by->missing == 0) {
        ++world_->counts->listings;
        seen_.clear();
        for (survey::part& part : by->parts) {
            std::move(part.found.begin(), part.found.end(), std::back_inserter(seen_));
        }
        world_->log.note(operator_actor, "sees {} locks", seen_.size());
    }
}

const listed_lock* operator_desk::draw_listed() {
    return seen_.empty() ? nullptr : &seen_[world_->random.below(seen_.size())];
}

// ---- orders

void operator_desk::release(server_process& of) {
    const auto lock = world_->random.below(static_cast<std::uint64_t>(world_->plan.locks));
    order(of, {.lock = lock_name_of(static_cast<int>(lock))});
}

void operator_desk::release_by_token(server_process& of) {
    if (const listed_lock* const lock = draw_listed(); lock != nullptr && lock->owner) {
        order(of, {.lock = lock->name, .token = lock->token});
    }
    list(of);  // for the next time
}

void operator_desk::kick(server_process& of) {
    if (const listed_lock* const lock = draw_listed(); lock != nullptr && !lock->waiters.empty()) {
        order(of, {.lock = lock->name,
                   .waiter = lock->waiters[world_->random.below(lock->waiters.size())]});
    }
    list(of);
}

void operator_desk::order(server_process& of, operator_order what) {
    what.asked_at = world_->events.now();
    const core::name_hash hash = of.hash_of(what.lock);
    ask(of.home_of(hash),
        [this, what = std::move(what), hash](server_shard& on) { carry_out(on, what, hash); });
}

void operator_desk::carry_out(server_shard& of, const operator_order& what, core::name_hash hash) {
    if (of.engine().table().find(what.lock, hash) == nullptr) {
        rules_->answered(what, operator_answer::no_lock, std::nullopt);
    } else if (what.waiter) {
        end_waiter(of, what, hash);
    } else {
        end_owner(of, what, hash);
    }
}

void operator_desk::end_owner(server_shard& of, const operator_order& what, core::name_hash hash) {
    core::connected_session* const owner = of.engine().owner_of(what.lock, hash);
    if (owner == nullptr) {
        rules_->answered(what, operator_answer::no_owner, std::nullopt);
    } else if (what.token && *what.token != owner->token().value) {
        ++world_->counts->stale_releases;
        rules_->answered(what, operator_answer::another_owner, id_of(*owner));
    } else {
        ++world_->counts->releases_by_operator;
        end(of, what, operator_answer::ended_owner, *owner);
    }
}

void operator_desk::end_waiter(server_shard& of, const operator_order& what, core::name_hash hash) {
    core::connected_session* const who =
        of.engine().waiter_of(what.lock, hash, core::session_id{*what.waiter});
    if (who == nullptr) {
        rules_->answered(what, operator_answer::no_waiter, std::nullopt);
    } else {
        ++world_->counts->kicks;
        end(of, what, operator_answer::ended_waiter, *who);
    }
}

void operator_desk::end(server_shard& of, const operator_order& what, operator_answer answer,
                        core::connected_session& who) {
    const std::uint32_t id = id_of(who);
    world_->count(what.waiter  ? fault::admin_kick
                  : what.token ? fault::admin_release_by_token
                               : fault::admin_release);
    world_->log.note(operator_actor, "ends connection {}", id);
    rules_->answered(what, answer, id);
    of.end_by_operator(who);
    rules_->carried_out(id);
}

}  // namespace monolock::simulation
