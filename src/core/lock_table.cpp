#include "core/lock_table.hpp"

#include <utility>

#include "core/assert.hpp"

namespace monolock::core {

std::string_view session::lock_name() const noexcept {
    MONOLOCK_ASSERT(lock_ != nullptr);
    return lock_->name;
}

name_hash session::lock_hash() const noexcept {
    MONOLOCK_ASSERT(lock_ != nullptr);
    return lock_->hash;
}

lock_table::~lock_table() {
    MONOLOCK_ASSERT(deadlines_.empty());
    MONOLOCK_ASSERT(places_.empty());
}

void lock_table::acquire(session& who, std::string_view name, name_hash hash,
                         std::chrono::milliseconds lease, time_point now, fact_list& out) {
    MONOLOCK_ASSERT(who.state_ == session_state::fresh);
    MONOLOCK_ASSERT(std::in_range<decltype(who.lease_ms_)>(lease.count()));
    named_lock& lock = find_or_make(name, hash);
    who.lock_ = &lock;
    who.lease_ms_ = static_cast<std::uint32_t>(lease.count());
    who.last_seen_ = now;
    who.since_ = now;
    who.armed_ = who.deadline();
    deadlines_.insert(who);

    const bool free = lock.owner == nullptr && granting_ == granting::given;
    // Invariant 6: a lock without an owner has no queue, unless it is idle; nobody is overtaken.
    MONOLOCK_ASSERT(!free || lock.waiters.empty() != lock.in_idle.is_linked());
    if (free && lock.waiters.empty()) {
        if (grant(who, lock, now, out)) {
            return;
        }
        idle_.push_back(lock);
    }
    who.state_ = session_state::waiting;
    lock.waiters.push_back(who);
    out.emplace_back(queued{.who = &who});
}

void lock_table::heartbeat(session& who, time_point now, fact_list& out) {
    MONOLOCK_ASSERT(who.state_ == session_state::waiting || who.state_ == session_state::owning);
    who.last_seen_ = now;
    out.emplace_back(acknowledged{.who = &who, .state = who.state_, .token = who.token_});
}

void lock_table::end(session& who, end_reason why, time_point now, fact_list& out) {
    const session_state was = std::exchange(who.state_, session_state::gone);
    MONOLOCK_ASSERT(was == session_state::waiting || was == session_state::owning);
    named_lock& lock = *who.lock_;
    deadlines_.erase(deadlines_.iterator_to(who));
    out.emplace_back(ended{.who = &who, .why = why, .was = was, .lasted = now - who.since_});

    bool next_may_own = was == session_state::owning;
    if (was == session_state::waiting) {
        next_may_own = lock.in_idle.is_linked() && &lock.waiters.front() == &who;
        lock.waiters.erase(lock.waiters.iterator_to(who));
    } else {
        lock.owner = nullptr;
    }
    if (next_may_own && granting_ == granting::given) {
        promote_next(lock, now, out);
    }
    forget_if_unused(lock);
}

void lock_table::retry_grant(time_point now, fact_list& out) {
    if (granting_ == granting::given) {
        promote_next(idle_.front(), now, out);
    }
}

void lock_table::grant_again() noexcept {
    MONOLOCK_ASSERT(places_.empty());
    granting_ = granting::given;
}

session* lock_table::suspect(time_point now, std::size_t& looks) {
    for (; looks > 0 && !deadlines_.empty(); --looks) {
        session& first = *deadlines_.begin();
        if (first.armed_ >= now) {
            return nullptr;
        }
        if (first.deadline() < now) {
            --looks;
            return &first;
        }
        // It has been heard of since it was armed: this is where heartbeats are paid for, once a
        // lease and not once a heartbeat.
        deadlines_.erase(deadlines_.begin());
        first.armed_ = first.deadline();
        deadlines_.insert(first);
    }
    return nullptr;
}

void lock_table::expire(session& who, time_point now, fact_list& out) {
    MONOLOCK_ASSERT(who.deadline() < now);
    end(who, end_reason::expired, now, out);
}

std::optional<time_point> lock_table::next_deadline() const noexcept {
    if (deadlines_.empty()) {
        return std::nullopt;
    }
    return deadlines_.begin()->armed_ + nanoseconds{1};
}

session* lock_table::any_session() noexcept {
    return deadlines_.empty() ? nullptr : &*deadlines_.begin();
}

const named_lock* lock_table::find(std::string_view name, name_hash hash) const noexcept {
    return locks_.find(name, hash);
}

named_lock& lock_table::find_or_make(std::string_view name, name_hash hash) {
    if (named_lock* const found = locks_.find(name, hash)) {
        return *found;
    }
    auto made = std::make_unique<named_lock>();
    made->name = std::string{name};  // a string that grows by assignment takes room to spare
    made->hash = hash;
    made->place = places_.size();
    places_.push_back(made.get());
    locks_.insert(*made);
    return *made.release();
}

void lock_table::forget_if_unused(named_lock& lock) noexcept {
    if (lock.owner != nullptr || !lock.waiters.empty()) {
        return;
    }
    if (lock.in_idle.is_linked()) {
        idle_.erase(idle_.iterator_to(lock));
    }
    locks_.erase(lock);
    places_[lock.place] = places_.back();
    places_[lock.place]->place = lock.place;
    places_.pop_back();
    forgotten_.reset(&lock);
}

// Whether the token source allows it; if not, nothing has changed.
bool lock_table::grant(session& who, named_lock& lock, time_point now, fact_list& out) {
    const std::optional<fencing_token> token = tokens_->next(who.lease());
    if (!token) {
        return false;
    }
    MONOLOCK_ASSERT(*token > last_token_);  // invariant 2
    last_token_ = *token;
    lock.owner = &who;
    who.token_ = *token;
    who.state_ = session_state::owning;
    out.emplace_back(granted{.who = &who, .token = *token, .waited = now - who.since_});
    who.since_ = now;
    return true;
}

void lock_table::promote_next(named_lock& lock, time_point now, fact_list& out) {
    if (lock.in_idle.is_linked()) {
        idle_.erase(idle_.iterator_to(lock));
    }
    if (lock.waiters.empty()) {
        return;
    }
    if (grant(lock.waiters.front(), lock, now, out)) {
        lock.waiters.pop_front();
    } else {
        idle_.push_back(lock);
    }
}

void lock_table::check_invariants() const {
    MONOLOCK_ASSERT(places_.size() == locks_.size());
    std::size_t sessions_in_locks = 0;
    for (const named_lock* lock : places_) {
        check_lock(*lock);
        sessions_in_locks += lock->waiters.size() + (lock->owner != nullptr ? 1U : 0U);
    }
    MONOLOCK_ASSERT(sessions_in_locks == deadlines_.size());  // invariants 4 and 5
    for (const session& who : deadlines_) {
        MONOLOCK_ASSERT(who.armed_ <= who.deadline());
        MONOLOCK_ASSERT(who.state_ == session_state::waiting ||
                        who.state_ == session_state::owning);
    }
}

void lock_table::check_lock(const named_lock& lock) const {
    MONOLOCK_ASSERT(&at(lock.place) == &lock);
    MONOLOCK_ASSERT(locks_.find(lock.name, lock.hash) == &lock);
    if (granting_ == granting::given) {
        MONOLOCK_ASSERT((lock.owner == nullptr) == lock.in_idle.is_linked());  // invariant 6
    }
    MONOLOCK_ASSERT(lock.owner != nullptr || !lock.waiters.empty());
    if (lock.owner != nullptr) {
        MONOLOCK_ASSERT(lock.owner->state_ == session_state::owning);
        MONOLOCK_ASSERT(lock.owner->lock_ == &lock);
        MONOLOCK_ASSERT(lock.owner->token_.value != 0);
        MONOLOCK_ASSERT(lock.owner->token_ <= last_token_);
    }
    for (const session& waiter : lock.waiters) {
        MONOLOCK_ASSERT(waiter.state_ == session_state::waiting);
        MONOLOCK_ASSERT(waiter.lock_ == &lock);
        MONOLOCK_ASSERT(waiter.token_.value == 0);
    }
}

}  // namespace monolock::core
