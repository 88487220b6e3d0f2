#include "server/admin/survey.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "config/glob.hpp"

namespace monolock::server::admin {

namespace {

// About a tenth of a millisecond each.
constexpr std::size_t claims_per_slice = 256;
constexpr std::size_t locks_per_slice = 1024;

// What it takes at the worst to match a name, in locks that are only looked at.
std::size_t matching_cost(std::string_view pattern, std::string_view name) noexcept {
    constexpr std::size_t steps_per_lock = 128;
    return pattern.size() * name.size() / steps_per_lock;
}

}  // namespace

void survey::begin(shard& on, interest what, receiver done) {
    const auto made = std::make_shared<survey>(on, std::move(what), std::move(done));
    made->place_ = on.engine().table().lock_count();
    // Only addresses until they are used. To grow would be to move all that was found, in one turn.
    made->found_.reserve(made->place_);
    made->slice();
}

void survey::begin_slice() {
    shard_->ask([self = shared_from_this()] { self->slice(); });
}

void survey::slice() {
    const core::lock_table& table = shard_->engine().table();
    const core::time_point now = std::chrono::steady_clock::now();
    place_ = std::min(place_, table.lock_count());
    std::size_t locks = 0;
    for (std::size_t claims = 0; claims < claims_per_slice && locks < locks_per_slice; ++locks) {
        if (place_ == 0) {
            done_(std::move(found_));
            return;
        }
        const core::named_lock& lock = table.at(--place_);
        if (what_.match) {
            locks += matching_cost(*what_.match, lock.name);
            if (!config::matches_glob(*what_.match, lock.name)) {
                continue;
            }
        }
        found_.push_back(view_of(lock, what_.waiters_max, now));
        claims += 1 + found_.back().waiters.size();
    }
    begin_slice();
}

void inspection::begin(shard& on, interest what, receiver done) {
    std::make_shared<inspection>(on, std::move(what), std::move(done))->slice();
}

void inspection::begin_slice() {
    shard_->ask([self = shared_from_this()] { self->slice(); });
}

void inspection::slice() {
    const core::named_lock* const lock = shard_->engine().table().find(what_.name, what_.hash);
    if (lock == nullptr) {
        done_(std::move(seen_));  // what was seen of it, if it ceased to exist on the way
        return;
    }
    const core::time_point now = std::chrono::steady_clock::now();
    if (!seen_) {
        seen_ = view_of(*lock, 0, now);
    }
    auto place = resume(*lock);
    const std::size_t left = what_.waiters_max - seen_->waiters.size();
    const std::size_t count_max = std::min(claims_per_slice, left);
    for (std::size_t count = 0; count < count_max && place != lock->waiters.end(); ++count) {
        seen_->waiters.push_back(view_of(*place));
        last_.reset(static_cast<const socket_session*>(&*place));
        ++place;
    }
    if (place != lock->waiters.end() && seen_->waiters.size() < what_.waiters_max) {
        begin_slice();
        return;
    }
    finish(*lock, now);
}

// Between the slices a waiter that was seen may have become the owner, and so those before it have
// left: ids rise along a queue, and from one owner to the next.
void inspection::finish(const core::named_lock& lock, core::time_point now) {
    seen_->taken_at = now;
    seen_->holder.reset();
    const bool is_cut = seen_->waiters.size() == what_.waiters_max;
    if (lock.owner != nullptr) {
        seen_->holder = view_of(*lock.owner);
        std::erase_if(seen_->waiters, [&lock](const claim_view& who) {
            return who.id.value <= lock.owner->id().value;
        });
    }
    seen_->waiters_total = is_cut ? lock.waiters.size() : seen_->waiters.size();
    last_.reset();
    done_(std::move(seen_));
}

// Behind the last one seen. If that left the queue meanwhile, behind those who came before it.
core::named_lock::queue::const_iterator inspection::resume(const core::named_lock& lock) const {
    if (!last_) {
        return lock.waiters.begin();
    }
    if (last_->state() == core::session_state::waiting) {
        return std::next(lock.waiters.iterator_to(*last_));
    }
    return std::find_if(lock.waiters.begin(), lock.waiters.end(), [this](const core::session& who) {
        return who.id().value > last_->id().value;
    });
}

}  // namespace monolock::server::admin
