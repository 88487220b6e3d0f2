#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "coordination/role.hpp"
#include "coordination/time.hpp"

namespace monolock::coordination {

// The longest lease that the store knows of, in one term: what a renewal puts there, and what may
// be granted. The successor waits so long before its first grant, so it is raised before a longer
// lease is granted, and lowered only when nobody who had one can still believe.
//
// Leases above `covered_max` count as of that length.
//
// Invariants:
//  1. limit() <= the smallest value that `state` may hold, whatever became of unanswered renewals.
//  2. A value is put only if it is at least each lease whose owner may still believe: from now
//     until its end, as reported, plus its length.
//  3. A value below the one before is put only after a report said that all shards kept to a limit
//     that low, and what it said of owners is in 2.
class lease_ledger {
public:
    // A term begins: `inherited` is what `state` said at the campaign. Until opened() was called,
    // and for that long after, the predecessor's owners may believe.
    lease_ledger(std::chrono::milliseconds inherited, std::chrono::milliseconds covered_max);

    void opened(time_point now);
    void report(const lease_report& what, time_point now);

    // Whether somebody waits for what only a renewal can allow.
    [[nodiscard]] bool wants_more() const noexcept;

    // What the renewal that goes out now shall put. It counts from here on if it is lower, and when
    // it was answered if it is higher.
    [[nodiscard]] std::chrono::milliseconds put(time_point now);
    void answered(std::chrono::milliseconds value);

    // A lease up to this may be granted. The largest number there is if that is every lease.
    [[nodiscard]] std::chrono::milliseconds limit() const noexcept;
    // What the store has for certain, or more.
    [[nodiscard]] std::chrono::milliseconds recorded() const noexcept { return recorded_; }

private:
    // Somebody had such a lease, and may believe until then.
    struct believer {
        std::chrono::milliseconds lease{0};
        time_point until;
    };
    static constexpr std::size_t believers_max = 16;

    [[nodiscard]] std::chrono::milliseconds covered(std::chrono::milliseconds lease) const noexcept;
    [[nodiscard]] std::chrono::milliseconds needed(time_point now);
    void remember(believer who);

    std::chrono::milliseconds covered_max_;
    std::chrono::milliseconds inherited_;
    std::optional<time_point> inherited_until_;  // nothing before opened()
    std::chrono::milliseconds recorded_;
    std::chrono::milliseconds limit_;  // <= recorded_; below it while it is about to be lowered
    bool adopted_ = false;             // all shards keep to a lowered limit_
    std::chrono::milliseconds wanted_{0};
    // The longest lease first; the first count_ count.
    std::array<believer, believers_max> believers_;
    std::size_t count_ = 0;
};

}  // namespace monolock::coordination
