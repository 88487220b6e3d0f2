#include "server/admin/ownership_history.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "server/socket_session.hpp"

namespace monolock::server::admin {

ownership_history::ownership_history()
    : buckets_(capacity), locks_{locks::bucket_traits{buckets_.data(), buckets_.size()}} {}

// The hooks mind that they are linked when they are destroyed.
ownership_history::~ownership_history() {
    locks_.clear();
    spare_locks_.clear();
    for (known_lock& each : lock_places_) {
        each.past.clear();
    }
    order_.clear();
    spare_.clear();
}

auto ownership_history::find(auto& among, std::string_view name, core::name_hash hash) {
    return among.find(
        name, [hash](std::string_view) { return static_cast<std::size_t>(hash.value); },
        [](std::string_view key, const known_lock& lock) { return key == lock.name; });
}

void ownership_history::take(const core::fact& what) {
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        ownership_change& change = begin(*grant->who);
        change.what = ownership_change::kind::granted;
        change.token = grant->token;
        change.at = grant->who->since();
        change.lasted = grant->waited;
    } else if (const auto* const end = std::get_if<core::ended>(&what);
               end != nullptr && end->was == core::session_state::owning) {
        ownership_change& change = begin(*end->who);
        change.what = ownership_change::kind::released;
        change.reason = end->why;
        change.token = end->who->token();
        change.at = end->who->since() + end->lasted;
        change.lasted = end->lasted;
    }
}

void ownership_history::add(const ownership_change& change, core::name_hash hash) {
    ownership_change& made = begin(change.lock, hash, change.identity);
    made.what = change.what;
    made.reason = change.reason;
    made.id = change.id;
    made.token = change.token;
    made.at = change.at;
    made.lasted = change.lasted;
    made.peer = change.peer;
}

ownership_change& ownership_history::begin(const core::session& who) {
    const auto& session = static_cast<const socket_session&>(who);
    ownership_change& change = begin(who.lock_name(), who.lock_hash(), session.identity());
    change.id = who.id();
    change.peer = session.peer();
    return change;
}

ownership_change& ownership_history::begin(std::string_view name, core::name_hash hash,
                                           std::string_view identity) {
    known_lock& lock = know(name, hash);
    remembered& made = make_place(lock);
    made.of = &lock;
    lock.past.push_back(made);
    order_.push_back(made);
    made.change.number = next_++;
    identity_bytes_ -= made.change.identity.capacity();
    made.change.identity = identity;
    identity_bytes_ += made.change.identity.capacity();
    while (identity_bytes_ > identities_max && order_.size() > 1) {
        forget_oldest(lock);
    }
    return made.change;
}

// What it had before counts no more, but its memory does until it has something else.
ownership_history::remembered& ownership_history::make_place(known_lock& of) {
    if (of.past.size() == lock_max) {
        remembered& oldest = of.past.front();
        of.complete_after = oldest.change.at;
        unlink(oldest, of);
        return oldest;
    }
    if (spare_.empty() && places_.size() < capacity) {
        return places_.emplace_back();
    }
    if (spare_.empty()) {
        forget_oldest(of);
    }
    remembered& made = spare_.front();
    spare_.pop_front();
    return made;
}

void ownership_history::forget_oldest(const known_lock& next_of) {
    remembered& oldest = order_.front();
    complete_after_ = std::max(complete_after_.value_or(oldest.change.at), oldest.change.at);
    unlink(oldest, next_of);
    if (identity_bytes_ > identities_max) {
        identity_bytes_ -= oldest.change.identity.capacity();
        oldest.change.identity = std::string{};
        oldest.change.identity.shrink_to_fit();
        identity_bytes_ += oldest.change.identity.capacity();
    }
    spare_.push_back(oldest);
}

void ownership_history::unlink(remembered& one, const known_lock& next_of) {
    known_lock& lock = *one.of;
    order_.erase(order_.iterator_to(one));
    lock.past.erase(lock.past.iterator_to(one));
    if (lock.past.empty() && &lock != &next_of) {
        locks_.erase(locks_.iterator_to(lock));
        spare_locks_.push_back(lock);
    }
}

// A new one stands among the locks from now on, and has no change for the moment.
ownership_history::known_lock& ownership_history::know(std::string_view name,
                                                       core::name_hash hash) {
    if (const auto found = find(locks_, name, hash); found != locks_.end()) {
        return *found;
    }
    if (spare_locks_.empty()) {
        spare_locks_.push_back(lock_places_.emplace_back());
    }
    known_lock& made = spare_locks_.front();
    spare_locks_.pop_front();
    made.name = name;
    made.hash = hash;
    made.complete_after.reset();
    locks_.insert(made);
    return made;
}

ownership_change ownership_history::copy_of(const remembered& one) {
    ownership_change made = one.change;
    made.lock = one.of->name;
    return made;
}

ownership_history::past ownership_history::of(std::string_view lock, core::name_hash hash) const {
    past made{.changes = {}, .complete_after = complete_after_};
    const auto found = find(locks_, lock, hash);
    if (found == locks_.end()) {
        return made;
    }
    for (const remembered& each : found->past) {
        made.changes.push_back(copy_of(each));
    }
    if (found->complete_after) {
        made.complete_after =
            std::max(made.complete_after.value_or(*found->complete_after), *found->complete_after);
    }
    return made;
}

std::vector<ownership_change> ownership_history::since(std::uint64_t number,
                                                       std::size_t count) const {
    std::vector<ownership_change> found;
    for (auto each = order_.rbegin(); each != order_.rend() && found.size() < count; ++each) {
        if (each->change.number < number) {
            break;
        }
        found.push_back(copy_of(*each));
    }
    std::reverse(found.begin(), found.end());
    return found;
}

}  // namespace monolock::server::admin
