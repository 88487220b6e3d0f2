#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulation/rule_table.hpp"

namespace monolock::simulation {

// The invariants, by the names that a failure prints and the planted bugs are known by.
enum class rule : std::uint8_t {
    table_invariants,
    core_assertion,
    one_owner,
    tokens_grow,
    fifo,
    fifo_as_seen,
    no_idle_lock,
    no_grant_withheld,
    ghost,
    one_home,
    move_arrives,
    drain_in_step,
    accepted_in_time,
    descriptor_limit,
    descriptors_balance,
    early_expiry,
    late_expiry,
    read_in_time,
    io_timeout_bounds,
    reader_not_blocked,
    first_limit,
    ended_for_cause,
    ends_at_once,
    mandate_asked,
    mandate_kept,
    sent_away_for_cause,
    replies,
    one_reply_per_message,
    replies_read,
    answered_before_fin,
    token_read,
    error_first,
    error_arrives,
    error_as_due,
    garbage_refused,
    alert_arrives,
    records_intact,
    same_bytes_again,
    believer_owns,
    two_believers,
    loser_stops,
    deadline_kept,
    fenced_resource,
    no_false_violation,
    stops_when_refused,
    granted_as_permitted,
    no_revoked_waiter,
    owners_stay,
    denied_for_cause,
    release_by_token,
    operator_answer,
    operator_given_up,
    force_as_ordered,
    listing,
    lost_without_cause,
    everyone_served,
    nothing_left,
    client_history,
};

struct invariant {
    rule is;
    std::string_view name;
    std::string_view promise;
};

// What each of them says; `simulate --rules` prints this.
inline constexpr std::array invariants{
    // The server's table.
    invariant{rule::table_invariants, "table_invariants",
              "the lock table's own check_invariants() holds"},
    invariant{rule::core_assertion, "core_assertion", "no assertion in the code under test fails"},
    invariant{rule::one_owner, "one_owner", "a lock has at most one owner in the server"},
    invariant{rule::tokens_grow, "tokens_grow",
              "tokens rise over all locks and shards of a process, and over restarts too if the "
              "wall clock did not go back"},
    invariant{rule::fifo, "fifo", "grants follow the ACQUIREs, among those still there"},
    invariant{rule::fifo_as_seen, "fifo_as_seen",
              "who saw WAITING before another sent its ACQUIRE is ahead of it"},
    invariant{rule::no_idle_lock, "no_idle_lock",
              "a lock with a queue has an owner, unless grants are withheld or there is no token "
              "for the head"},
    invariant{rule::no_grant_withheld, "no_grant_withheld",
              "while grants are withheld nobody becomes an owner"},
    invariant{rule::ghost, "ghost", "nothing is said about a session that is gone"},
    // Its shards.
    invariant{rule::one_home, "one_home",
              "a lock lives in the table of one shard, as long as the process lives"},
    invariant{rule::move_arrives, "move_arrives",
              "a claim that is handed over is with the shard of its lock within 5 ms of that "
              "shard's time"},
    invariant{
        rule::drain_in_step, "drain_in_step",
        "in a shutdown no session is ended before all shards have stopped granting, or one of "
        "them has stalled for a second"},
    invariant{
        rule::accepted_in_time, "accepted_in_time",
        "a connection for which there is a descriptor is accepted within 5 ms, or at the next "
        "try if others gave the descriptor back"},
    invariant{rule::descriptor_limit, "descriptor_limit",
              "no more connections are accepted than the limit allows"},
    invariant{rule::descriptors_balance, "descriptors_balance",
              "the server knows how many connections it holds"},
    // Leases and limits.
    invariant{rule::early_expiry, "early_expiry",
              "a session expires only if its true silence exceeds its lease, with no byte there to "
              "be read"},
    invariant{rule::late_expiry, "late_expiry",
              "a session expires at most 5 ms after its lease, or after the server's stop"},
    invariant{rule::read_in_time, "read_in_time",
              "what arrives is read within 5 ms, unless replies are blocked or the server was "
              "stopped"},
    invariant{rule::io_timeout_bounds, "io_timeout_bounds",
              "a blocked write ends its session after the I/O timeout, not before"},
    invariant{rule::reader_not_blocked, "reader_not_blocked",
              "a client of the library, with buffers of a real size, never meets the I/O timeout"},
    invariant{rule::first_limit, "first_limit",
              "of a blocked session's lease and I/O timeout the one that passed first ends it"},
    invariant{rule::ended_for_cause, "ended_for_cause",
              "a graceful or forced end has a word of the peer, or an ERROR, before it"},
    invariant{rule::ends_at_once, "ends_at_once",
              "FIN, RST and what is answered with an ERROR end the session in that turn"},
    // The mandate of one of several servers.
    invariant{rule::mandate_asked, "mandate_asked",
              "no message is acted upon, and nothing held back is written, before the engine has "
              "asked whether it may, after the receive"},
    invariant{rule::mandate_kept, "mandate_kept", "what the engine may not do it does not"},
    invariant{rule::sent_away_for_cause, "sent_away_for_cause",
              "a session is told ERROR 0x01 in a shutdown, or without a mandate"},
    // Replies.
    invariant{rule::replies, "replies",
              "frames are what the facts say, in order, each whole and its own"},
    invariant{rule::one_reply_per_message, "one_reply_per_message", "every message has one reply"},
    invariant{rule::replies_read, "replies_read",
              "a client reads WAITING, the push, then ACQUIRED, and not more than is due"},
    invariant{rule::answered_before_fin, "answered_before_fin",
              "a client that half-closed and reads to the end reads an answer to each message"},
    invariant{rule::token_read, "token_read",
              "a client reads the token of its grant, and no other"},
    invariant{rule::error_first, "error_first",
              "who is ended by an ERROR is told before the lock moves on"},
    invariant{rule::error_arrives, "error_arrives",
              "an ERROR that was written reaches a client that is there"},
    invariant{rule::error_as_due, "error_as_due", "an ERROR arrives with the code that was due"},
    invariant{rule::garbage_refused, "garbage_refused",
              "the first that is no message, and nothing else, is refused with the code that the "
              "protocol has for it"},
    invariant{rule::alert_arrives, "alert_arrives",
              "a fatal alert of the record layer reaches a peer that is there"},
    invariant{rule::records_intact, "records_intact",
              "the library and the server can open each other's records"},
    invariant{rule::same_bytes_again, "same_bytes_again",
              "a record that was half sent is finished with the bytes it began with"},
    // The client.
    invariant{rule::believer_owns, "believer_owns",
              "who believes is the owner, unless its end was announced"},
    invariant{rule::two_believers, "two_believers",
              "at most one believes, unless the end of the others was announced"},
    invariant{rule::loser_stops, "loser_stops",
              "a client stops believing on the ERROR, the FIN or the RST"},
    invariant{rule::deadline_kept, "deadline_kept",
              "a client believes for 0.8 x lease from the send time of the last answered message, "
              "and gives a claim up for silence then, not later and not before"},
    invariant{rule::fenced_resource, "fenced_resource",
              "a resource that compares tokens accepts no write of an earlier grant after one of a "
              "later grant"},
    invariant{rule::no_false_violation, "no_false_violation",
              "the claim never calls a violation what a real server says"},
    invariant{rule::stops_when_refused, "stops_when_refused",
              "a claim that an ERROR from 0x10 up ended is not tried again"},
    // Access rules.
    invariant{rule::granted_as_permitted, "granted_as_permitted",
              "a grant is permitted by the newest access rules that the shard of the lock, or the "
              "one that read the ACQUIRE, had adopted"},
    invariant{rule::no_revoked_waiter, "no_revoked_waiter",
              "whom the rules just adopted do not permit has left the queue"},
    invariant{rule::owners_stay, "owners_stay", "the sweep of the waiters ends no owner"},
    invariant{rule::denied_for_cause, "denied_for_cause", "who is told 0x18 is not permitted"},
    // The operator.
    invariant{rule::release_by_token, "release_by_token",
              "an operator's release with a token ends the owner that has it, or nobody"},
    invariant{rule::operator_answer, "operator_answer", "an operator is told what is so"},
    invariant{rule::operator_given_up, "operator_given_up",
              "what the operator was told will not be done is not done later"},
    invariant{rule::force_as_ordered, "force_as_ordered",
              "nobody is ended by force whom no operator named, and whom one ends is ended by "
              "force"},
    invariant{rule::listing, "listing",
              "a listing shows each lock as it is, and all that were there all the time"},
    // The liveness phase, once faults have stopped.
    invariant{rule::lost_without_cause, "lost_without_cause",
              "once faults have stopped, no claim is lost"},
    invariant{rule::everyone_served, "everyone_served",
              "once faults have stopped, every client is granted its lock within a bound"},
    invariant{rule::nothing_left, "nothing_left",
              "at last the server has no session, lock, connection or descriptor left"},
    invariant{rule::client_history, "client_history",
              "what the honest clients tell holds to each invariant of history/check.hpp that must "
              "never break, as far as clocks that drift allow; those of lateness are not asked"},
};

[[nodiscard]] constexpr std::string_view name_of(rule one) noexcept {
    return invariants[static_cast<std::size_t>(one)].name;
}

static_assert(each_rule_has_its_line(invariants, rule::client_history),
              "in the order of their names above");

}  // namespace monolock::simulation
