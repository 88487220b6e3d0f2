#include "coordination/lease_ledger.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace monolock::coordination {

namespace {

using std::chrono::milliseconds;

// The protocol has no longer one; what says so is nonsense.
constexpr milliseconds lease_max{std::numeric_limits<std::uint32_t>::max()};

}  // namespace

lease_ledger::lease_ledger(milliseconds inherited, milliseconds covered_max)
    : covered_max_{covered_max},
      inherited_{std::clamp(inherited, milliseconds{0}, lease_max)},
      recorded_{inherited_},
      limit_{inherited_} {}

void lease_ledger::opened(time_point now) {
    inherited_until_ = now + inherited_;
}

void lease_ledger::report(const lease_report& what, time_point now) {
    const milliseconds longest = covered(what.longest);
    remember({.lease = longest, .until = now + longest});
    wanted_ = covered(what.wanted);
    if (wanted_ > limit_) {
        limit_ = recorded_;  // not lowered after all
        adopted_ = false;
    } else if (limit_ < recorded_) {
        adopted_ = covered(what.adopted) <= limit_ && longest <= limit_;
    }
}

bool lease_ledger::wants_more() const noexcept {
    return wanted_ > recorded_;
}

milliseconds lease_ledger::put(time_point now) {
    const milliseconds need = needed(now);
    if (need >= recorded_) {
        return need;
    }
    if (adopted_ && need <= limit_) {
        recorded_ = limit_;  // whatever becomes of this renewal, it may be there
        adopted_ = false;
    } else {
        // First the shards keep to it, and say whom they have.
        limit_ = need;
        adopted_ = false;
    }
    return recorded_;
}

void lease_ledger::answered(milliseconds value) {
    if (value > recorded_) {
        recorded_ = value;
        limit_ = value;
    }
}

milliseconds lease_ledger::limit() const noexcept {
    return limit_ >= covered_max_ ? milliseconds::max() : limit_;
}

milliseconds lease_ledger::covered(milliseconds lease) const noexcept {
    return std::clamp(lease, milliseconds{0}, covered_max_);
}

milliseconds lease_ledger::needed(time_point now) {
    milliseconds need = wanted_;
    if (!inherited_until_ || now < *inherited_until_) {
        need = std::max(need, inherited_);
    }
    const auto begin = believers_.begin();
    const auto end = std::remove_if(begin, begin + static_cast<std::ptrdiff_t>(count_),
                                    [now](const believer& who) { return who.until <= now; });
    count_ = static_cast<std::size_t>(end - begin);
    return count_ > 0 ? std::max(need, believers_.front().lease) : need;
}

// Longest first. Who had no longer a lease, and was seen no later, may believe no longer.
void lease_ledger::remember(believer who) {
    while (count_ > 0 && believers_.at(count_ - 1).lease <= who.lease) {
        --count_;
    }
    if (count_ < believers_max) {
        believers_.at(count_++) = who;
    } else {
        believer& last = believers_.at(count_ - 1);
        last.until = std::max(last.until, who.until);
    }
}

}  // namespace monolock::coordination
