#pragma once

#include <boost/intrusive/set.hpp>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "core/fact.hpp"
#include "core/lock_index.hpp"
#include "core/name_hash.hpp"
#include "core/named_lock.hpp"
#include "core/session.hpp"
#include "core/token_source.hpp"

namespace monolock::core {

struct armed_deadline_of {
    using type = time_point;
    const time_point& operator()(const session& who) const noexcept { return who.armed_; }
};

// Every lock of one shard. One thread owns it. It never blocks, waits or reads a clock; calls run
// to completion and state what happened as facts, appended to `out` in order.
//
// Invariants (check_invariants() checks them):
//  1. A lock has at most one owner.
//  2. Tokens only grow.
//  3. Grants follow the order of the ACQUIREs among the waiters still there.
//  4. A session is waiting in exactly one queue, or owning exactly one lock, or gone.
//  5. Every session that is not gone has exactly one place among the deadlines, at or before its
//     last_seen + lease.
//  6. A lock without an owner has no queue and does not exist, except while grants are withheld,
//     or while it is idle: the token source refused a token for the head of its queue.
class lock_table {
public:
    explicit lock_table(token_source& tokens) noexcept : tokens_{&tokens} {}
    lock_table(const lock_table&) = delete;
    lock_table& operator=(const lock_table&) = delete;
    // All sessions must be gone.
    ~lock_table();

    // A fresh session claims a name: states `granted` if nobody owns it and the token source gives
    // a token, else `queued`. `now` is the reading taken after the receive that returned the
    // ACQUIRE. `hash` is the hash of the name.
    void acquire(session& who, std::string_view name, name_hash hash,
                 std::chrono::milliseconds lease, time_point now, fact_list& out);

    // Writes last_seen and nothing else; states `acknowledged`. `now` as above.
    void heartbeat(session& who, time_point now, fact_list& out);

    // Ends a waiting or owning session. States `ended`, then `granted` if that promoted a waiter.
    // The head of the queue is promoted whatever its lease says: it is judged afterwards, like any.
    // A waiter's end promotes only where it was the head of an idle lock, and the source takes to
    // the next.
    void end(session& who, end_reason why, time_point now, fact_list& out);

    // A session whose lease has passed at `now`, or null. `now` must be at or after every reading
    // given before. The caller reads that session's socket once more, after `now` was taken; only
    // if that finds nothing may it call expire with the same `now` (docs/protocol.md, "Leases").
    // Looks at no more than `looks` sessions, and takes off as many as it looked at: after a pause
    // every session that has beaten may be due for a look. With none left, null says nothing.
    [[nodiscard]] session* suspect(time_point now, std::size_t& looks);
    // The same without a bound.
    [[nodiscard]] session* suspect(time_point now) {
        std::size_t looks = session_count();
        return suspect(now, looks);
    }

    // Ends a session whose lease has passed at `now`, as `end` does, with reason expired.
    void expire(session& who, time_point now, fact_list& out);

    // The earliest reading at which suspect() may find something; never later than the true one.
    [[nodiscard]] std::optional<time_point> next_deadline() const noexcept;

    // The locks that the token source refused.
    [[nodiscard]] std::size_t idle_count() const noexcept { return idle_.size(); }
    // Asks the source once more for the idle lock that was refused the longest ago, and states
    // `granted` if it gives a token; if not, the lock is the last in line. There must be one. Does
    // nothing while grants are withheld.
    void retry_grant(time_point now, fact_list& out);

    // From now on nobody is granted anything: claims queue, and a lock whose owner ends stays
    // without one. The first act of a controlled shutdown, and of a server that steps down.
    void withhold_grants() noexcept { granting_ = granting::withheld; }
    // Undoes that. All sessions must be gone.
    void grant_again() noexcept;

    // Calls visit(session&) for every waiter, those of one lock in the order of its queue. The
    // table must not change meanwhile.
    template <std::invocable<session&> Visitor>
    void for_each_waiter(Visitor visit) {
        for (named_lock* const lock : places_) {
            for (session& waiter : lock->waiters) {
                visit(waiter);
            }
        }
    }

    // The first waiter of the lock, in the order of its queue, for which is_it(const session&) is
    // true, or null.
    template <std::predicate<const session&> Predicate>
    [[nodiscard]] session* find_waiter(std::string_view name, name_hash hash, Predicate is_it) {
        if (named_lock* const lock = locks_.find(name, hash)) {
            for (session& waiter : lock->waiters) {
                if (is_it(waiter)) {
                    return &waiter;
                }
            }
        }
        return nullptr;
    }

    // Some session that is not gone, or null.
    [[nodiscard]] session* any_session() noexcept;

    [[nodiscard]] std::size_t lock_count() const noexcept { return places_.size(); }
    [[nodiscard]] std::size_t session_count() const noexcept { return deadlines_.size(); }
    // The lock of that name, or null.
    [[nodiscard]] const named_lock* find(std::string_view name, name_hash hash) const noexcept;

    // The locks by place, 0 to lock_count() - 1, in no order that means anything. Whoever goes
    // through them downwards, from the last place to the first, may stop on the way and go on later
    // while locks come and go: every lock that is there all the time is met at least once, a place
    // that is no longer there is skipped, and one lock may be met twice.
    [[nodiscard]] const named_lock& at(std::size_t place) const noexcept { return *places_[place]; }

    // Aborts on a broken invariant. Slow: for tests and the simulator, after every step.
    void check_invariants() const;

private:
    enum class granting { given, withheld };

    named_lock& find_or_make(std::string_view name, name_hash hash);
    void forget_if_unused(named_lock& lock) noexcept;
    [[nodiscard]] bool grant(session& who, named_lock& lock, time_point now, fact_list& out);
    void promote_next(named_lock& lock, time_point now, fact_list& out);
    void check_lock(const named_lock& lock) const;

    token_source* tokens_;
    fencing_token last_token_;
    granting granting_ = granting::given;
    lock_index locks_;
    // All of them, owned; the last fills the gap of one that ceases to exist. No vector: that would
    // move all of them when it grows, and keep its size for ever.
    std::deque<named_lock*> places_;
    boost::intrusive::list<
        named_lock,
        boost::intrusive::member_hook<named_lock, named_lock::idle_hook, &named_lock::in_idle>,
        boost::intrusive::constant_time_size<true>>
        idle_;  // the longest refused first
    // The lock that ceased to exist last, kept so that the facts about it can still name it.
    std::unique_ptr<named_lock> forgotten_;
    boost::intrusive::multiset<
        session,
        boost::intrusive::member_hook<session, session::deadline_hook, &session::deadline_hook_>,
        boost::intrusive::key_of_value<armed_deadline_of>>
        deadlines_;
};

}  // namespace monolock::core
