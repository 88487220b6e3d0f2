#include "simulation/rules.hpp"

#include <algorithm>

namespace monolock::simulation {

void rules::access_written(unsigned generation, const access_table& table) {
    access_.emplace(generation, table);
}

bool rules::may_claim(const claim_record& who, unsigned generation) const {
    const auto table = access_.find(generation);
    return table == access_.end() || table->second.permits(who.identity, who.lock);
}

// From here on nobody waits whom these rules do not permit, and the sweep concerns waiters alone.
void rules::access_adopted(int shard, unsigned generation) {
    shard_book& at = shard_book_of(shard);
    at.generation = generation;
    at.sweeping = true;
}

void rules::sweep_returned(int shard) {
    shard_book& at = shard_book_of(shard);
    at.sweeping = false;
    for (const claim_record& who : records_) {
        if (who.process == process_ && who.shard == shard &&
            who.at == claim_record::stage::waiting && !may_claim(who, at.generation)) {
            fail(rule::no_revoked_waiter, who, "goes on waiting though the rules do not permit it");
        }
    }
}

void rules::denied(claim_record& who, const std::string& lock, unsigned generation) {
    who.lock = book_of(lock);
    ++world_->counts->denials;
    if (may_claim(who, std::max(generation, who.permitted_by))) {
        fail(rule::denied_for_cause, who, "denied though the rules permit it");
    }
}

void rules::check_permitted(const claim_record& who) const {
    const unsigned newest = std::max(who.permitted_by, shard_book_of(who.shard).generation);
    if (!may_claim(who, newest)) {
        fail(rule::granted_as_permitted, who,
             "granted though rules " + std::to_string(newest) + " do not permit it");
    }
}

void rules::retried(const claim_record& before) const {
    if (before.error_read && !protocol::is_temporary(before.error_code_read)) {
        fail(rule::stops_when_refused, before,
             "its client was told that it is at fault, and retries");
    }
}

}  // namespace monolock::simulation
