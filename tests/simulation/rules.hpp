#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/session_engine.hpp"
#include "protocol/frames.hpp"
#include "simulation/access.hpp"
#include "simulation/context.hpp"

namespace monolock::simulation {

// The names of the locks that clients claim.
[[nodiscard]] std::string lock_name_of(int lock);

// A frame of the server as the rules compare it; the token is zero unless it is ACQUIRED.
struct seen_frame {
    protocol::server_message type{};
    std::uint64_t token = 0;
    friend bool operator==(const seen_frame&, const seen_frame&) = default;
};

// Everything that is known about one connection's claim, on both sides. The rules keep their own
// books; from the code under test they take only what it says and what it sends.
struct claim_record {
    enum class stage : std::uint8_t { outside, arrived, waiting, owning, ended };

    std::uint32_t id = 0;
    int lock = 0;
    nanoseconds lease{0};
    int identity = 0;  // of its client

    // The server.
    unsigned process = 0;  // which one, counted from 1
    stage at = stage::outside;
    const core::session* session = nullptr;  // until it is retired
    core::end_reason reason{};
    bool word_given = false;  // FIN or RST came, an ERROR was due, or the process ended
    bool refused = false;     // an ERROR was due
    protocol::error_code error_code_due{};
    unsigned permitted_by = 0;  // the access rules that admitted it, by generation
    bool excused = false;       // its ERROR may be lost: the server died, or waited long enough
    std::uint64_t token = 0;
    std::uint64_t grant_number = 0;

    // Replies, as the server writes them.
    std::uint64_t messages = 0;  // that the engine was given
    std::uint64_t unanswered = 0;
    std::vector<seen_frame> expected;
    std::vector<seen_frame> written;
    protocol::server_frame_decoder written_decoder;
    bool error_written = false;
    bool alert_sent = false;  // a fatal one
    bool write_short = false;
    bool write_failed = false;
    bool touched = false;

    // Replies, as the client reads them.
    protocol::server_frame_decoder read_decoder;
    std::uint64_t waitings_read = 0;
    std::uint64_t acquireds_read = 0;
    std::uint64_t token_read = 0;
    bool error_read = false;
    protocol::error_code error_code_read{};
    bool alert_read = false;

    // The client.
    bool honest = false;  // it uses the library's claim
    std::optional<sim_time> first_sent;
    std::optional<sim_time> waiting_seen;
    bool believed_after_end = false;
    bool believed_with_another = false;
};

// What the server knew when it let a session expire.
struct expiry_evidence {
    nanoseconds reading{0};       // the last reading before the session's last receive
    nanoseconds last_arrival{0};  // when the last byte that was read had arrived
    nanoseconds last_receive{0};  // a reading of the moment when it was read, not before
    bool unread_before_reading = false;
    bool word_read = false;    // close_notify or a fatal alert of the peer
    bool reads = false;        // neither given up by the kernel nor blocked by its replies
    bool was_stopped = false;  // the server, since the deadline
};

// The invariants. Each has a name, which a failure prints and the planted bugs are known by:
//
//   table_invariants        lock_table::check_invariants() holds
//   core_assertion          no assertion in the code under test fails
//   one_owner               a lock has at most one owner in the server
//   tokens_grow             within a process; over restarts too if the wall clock did not go back
//   fifo                    grants follow the ACQUIREs, among those still there
//   fifo_as_seen            who saw WAITING before another sent its ACQUIRE is ahead of it
//   no_idle_lock            a lock with a queue has an owner, unless grants are withheld
//   no_grant_withheld       and then nobody becomes one
//   ghost                   nothing is said about a session that is gone
//   early_expiry            true silence exceeds the lease, and no byte was there to be read
//   late_expiry             by at most 5 ms, if the server was not stopped
//   read_in_time            what arrives is read within 5 ms, unless replies are blocked or the
//   server
//                           was stopped
//   io_timeout_bounds       a blocked write ends its session after the I/O timeout, not before
//   reader_not_blocked      a client of the library, with buffers of a real size, never meets the
//   I/O
//                           timeout: its end would be announced by a RST that can be lost
//   first_limit             of a blocked session's lease and I/O timeout the one that passed first
//   ends it ended_for_cause         a graceful end has a word of the peer, or an ERROR, before it
//   ends_at_once            FIN, RST and what is answered with an ERROR end the session in that
//   turn replies                 frames are what the facts say, in order, each whole and its own
//   one_reply_per_message   every message has one
//   replies_read            what a client reads: WAITING…, the push, ACQUIRED…; not more than due
//   no_false_violation      (client) the claim never calls it a violation: the server is a real one
//   answered_before_fin     and not less, if the client half-closed and read to the end
//   token_read              the token of the grant
//   error_arrives           an ERROR that was written reaches a client that is there
//   error_as_due            with the code that was due
//   alert_arrives           so does a fatal alert of the record layer
//   records_intact          the library and the server can open each other's records
//   same_bytes_again        a record that was half sent is finished with the bytes it began with
//   believer_owns           who believes is the owner, unless its end was announced
//   two_believers           at most one does, unless the end of the others was announced
//   loser_stops             on the frame, the FIN or the RST
//   fenced_resource         accepts no write of an earlier grant after one of a later grant
//   granted_as_permitted    by the newest access rules that the shard of the lock, or the one that
//                           read the ACQUIRE, had adopted
//   no_revoked_waiter       whom the rules just adopted do not permit has left the queue
//   owners_stay             the sweep of the waiters ends no owner
//   denied_for_cause        who is told 0x18 is not permitted
//   stops_when_refused      (client) a claim that an ERROR from 0x10 up ended is not tried again
//   lost_without_cause      (world) once faults stopped, no claim is lost
//   everyone_served         (world) once faults stopped, within a bound
//   nothing_left            (world) at last the server is empty
class rules {
public:
    rules(context& world, int locks);

    [[nodiscard]] claim_record& of(std::uint32_t id);

    // ---- the server's side, in rules_server.cpp
    void process_started(unsigned process, std::int64_t wall_ms);
    // Its sessions are gone with it, and that is known.
    void process_ended();
    void grants_withheld() noexcept { withheld_ = true; }
    // ---- access, in rules_access.cpp
    void access_written(unsigned generation, const access_table& table);
    // By the shard of the locks; the sweep of the waiters follows in the same turn.
    void access_adopted(unsigned generation);
    void sweep_returned();
    // ERROR 0x18 is due by the rules of that generation.
    void denied(claim_record& who, const std::string& lock, unsigned generation);
    // A client tries again what it tried with this connection.
    void retried(const claim_record& before) const;

    // Just before the engine admits it.
    void arrived(claim_record& who, const std::string& name, const core::session& session);
    // From the source, for a grant that will be stated later.
    void token_taken(std::uint64_t token, std::int64_t wall_ms);
    void fact_stated(const core::fact& what);
    void expired(const claim_record& who, const expiry_evidence& evidence);
    void io_timed_out(const claim_record& who, nanoseconds blocked, nanoseconds limit,
                      bool was_stopped);
    // Of a session whose replies are blocked; readings of the server's clock.
    void ended_by_limit(const claim_record& who, core::end_reason why, nanoseconds lease_over,
                        nanoseconds io_over) const;
    // A byte that the server has not read, and since when it might have been.
    void left_unread(const claim_record& who, nanoseconds since) const;
    // After each call of the engine: the books must balance.
    void call_returned();

    // ---- replies, in rules_replies.cpp
    void received(claim_record& who, std::size_t messages);
    // What the client sent is no record; the server's alert was handed to the kernel, or not.
    void cannot_read(claim_record& who, bool alert_sent);
    // FIN or RST was seen by the server, or the same said in a record.
    void peer_closed(claim_record& who);
    void error_due(claim_record& who, protocol::error_code code);
    void wrote(claim_record& who, std::span<const std::byte> taken, std::size_t offered);
    void write_failed(claim_record& who);
    // The session is about to be destroyed.
    void retired(claim_record& who);
    void client_read(claim_record& who, std::span<const std::byte> bytes);
    // All bytes that arrived have been read. `messages` says how many the client had sent if it
    // half-closed and waited for this.
    void client_read_end(const claim_record& who, bool troubled,
                         std::optional<std::uint64_t> messages);

    // ---- the client's side, in rules_client.cpp
    struct belief {
        std::uint32_t claim = 0;  // connection
        int client = 0;
    };
    // Who believes at this moment, each by its own clock.
    void believers(std::span<const belief> who);
    void loser_stopped(int client, const claim_record& who, bool still_believes);
    void resource_written(const claim_record& by, std::uint64_t token);

private:
    struct lock_book {
        std::string name;
        std::vector<std::uint32_t> line;  // who arrived and has not ended, in that order
        std::optional<std::uint32_t> owner;
        std::uint64_t resource_token = 0;
        std::uint64_t resource_grant = 0;
    };

    [[nodiscard]] int book_of(const std::string& name);
    [[noreturn]] void fail(const char* invariant, const claim_record& who,
                           const std::string& how) const;
    void granted(const core::granted& what);
    void ended(const core::ended& what);
    void acknowledged(const core::acknowledged& what);
    void check_turn(const claim_record& who);
    [[nodiscard]] bool may_claim(const claim_record& who, unsigned generation) const;
    void check_permitted(const claim_record& who) const;
    void touch(claim_record& who);
    void compare_frames(claim_record& who);
    void read_frame(claim_record& who, const protocol::server_frame& frame);
    void believes_after_end(claim_record& who, std::span<const belief> all);
    void check_one_believer(std::span<const belief> who) const;

    context* world_;
    std::vector<lock_book> locks_;
    std::deque<claim_record> records_;  // by connection
    std::vector<claim_record*> touched_;
    std::map<unsigned, access_table> access_;  // by generation; empty if there are no rules
    unsigned home_generation_ = 0;
    bool sweeping_ = false;

    unsigned process_ = 0;
    bool withheld_ = false;
    std::uint64_t last_token_ = 0;
    std::int64_t wall_ms_max_ = 0;         // at any grant of this process
    std::int64_t wall_ms_max_before_ = 0;  // at any grant of an earlier one
    std::uint64_t last_token_before_ = 0;
    std::uint64_t grants_ = 0;
    bool clock_went_back_ = false;  // from one process to the next: tokens promise nothing then
};

}  // namespace monolock::simulation
