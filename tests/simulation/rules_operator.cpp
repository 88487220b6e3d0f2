#include <algorithm>

#include "simulation/rules.hpp"

namespace monolock::simulation {

namespace {

std::string quoted(const std::string& name) {
    return "'" + name + "'";
}

}  // namespace

const rules::lock_book* rules::find_book(const std::string& name) const {
    const auto found = std::find_if(locks_.begin(), locks_.end(),
                                    [&](const lock_book& lock) { return lock.name == name; });
    return found == locks_.end() || found->line.empty() ? nullptr : &*found;
}

// ---- orders

// What the books say that the operator must be told. Nobody has been ended yet.
operator_answer rules::right_answer(const operator_order& what) const {
    const lock_book* const lock = find_book(what.lock);
    if (lock == nullptr) {
        return operator_answer::no_lock;
    }
    if (what.waiter) {
        const bool waits =
            lock->owner != what.waiter &&
            std::find(lock->line.begin(), lock->line.end(), *what.waiter) != lock->line.end();
        return waits ? operator_answer::ended_waiter : operator_answer::no_waiter;
    }
    if (!lock->owner) {
        return operator_answer::no_owner;
    }
    const bool meant = !what.token || *what.token == records_[*lock->owner].token;
    return meant ? operator_answer::ended_owner : operator_answer::another_owner;
}

void rules::answered(const operator_order& what, operator_answer answer,
                     std::optional<std::uint32_t> who) {
    if (world_->events.now() - what.asked_at > operator_patience) {
        world_->log.fail(rule::operator_given_up,
                         "an order on lock " + quoted(what.lock) +
                             " is carried out although the operator was told that it is not");
    }
    const operator_answer right = right_answer(what);
    if (what.token && answer == operator_answer::ended_owner && answer != right) {
        world_->log.fail(rule::release_by_token,
                         "the owner of lock " + quoted(what.lock) + " is to be ended, but token " +
                             std::to_string(*what.token) + " is not its token");
    }
    const lock_book* const lock = find_book(what.lock);
    const bool names_right = what.waiter
                                 ? answer != operator_answer::ended_waiter || who == what.waiter
                                 : lock == nullptr || who == lock->owner;
    if (answer != right || !names_right) {
        world_->log.fail(rule::operator_answer,
                         "an order on lock " + quoted(what.lock) + " is answered with " +
                             std::to_string(static_cast<int>(answer)) + ", right is " +
                             std::to_string(static_cast<int>(right)));
    }
    if (answer == operator_answer::ended_owner || answer == operator_answer::ended_waiter) {
        records_[*who].ordered_out = true;
        world_->told.operator_ends(records_[*who].lock, world_->events.now());
    }
}

void rules::carried_out(std::uint32_t id) const {
    const claim_record& who = records_[id];
    if (who.at != claim_record::stage::ended) {
        fail(rule::operator_answer, who, "the operator is told that it was ended, and it goes on");
    }
    world_->told.operator_has_ended(who.lock, world_->events.now());
}

// ---- the listing

void rules::listed(const listed_lock& what) const {
    const lock_book* const lock = find_book(what.name);
    if (lock == nullptr) {
        world_->log.fail(rule::listing,
                         "shows lock " + quoted(what.name) + ", which does not exist");
    }
    std::vector<std::uint32_t> waiters = lock->line;
    std::erase_if(waiters, [&](std::uint32_t id) { return lock->owner == id; });
    const std::uint64_t token = lock->owner ? records_[*lock->owner].token : 0;
    if (what.owner != lock->owner || what.token != token || what.waiters != waiters) {
        world_->log.fail(rule::listing, "shows lock " + quoted(what.name) +
                                            " with another owner, token or queue than it has");
    }
}

// Those that were there all the time are in it.
void rules::listing_done(int shard, sim_time began, const std::vector<listed_lock>& found) const {
    for (const lock_book& lock : locks_) {
        const bool throughout =
            lock.home == shard && !lock.line.empty() && lock.exists_since < began;
        const bool in_it = std::any_of(found.begin(), found.end(), [&](const listed_lock& one) {
            return one.name == lock.name;
        });
        if (throughout && !in_it) {
            world_->log.fail(rule::listing, "does not show lock " + quoted(lock.name));
        }
    }
}

}  // namespace monolock::simulation
