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

// What a peer sends that is no message of the protocol, the first of it.
struct garbage {
    std::uint64_t behind = 0;  // so many messages, the ACQUIRE among them
    protocol::error_code code{};
};

// Everything that is known about one connection's claim, on both sides. The rules keep their own
// books; from the code under test they take only what it says and what it sends.
struct claim_record {
    enum class stage : std::uint8_t { outside, moving, arrived, waiting, owning, ended };

    std::uint32_t id = 0;
    int lock = 0;
    nanoseconds lease{0};
    int identity = 0;  // of its client

    // The server.
    unsigned process = 0;  // which one, counted from 1
    stage at = stage::outside;
    int shard = 0;  // of its lock; once it is handed over to it, or arrived
    sim_time handed_over_at{0};
    const core::session* session = nullptr;  // until it is retired
    core::end_reason reason{};
    bool word_given = false;  // FIN or RST came, an ERROR was due, or the process ended
    bool refused = false;     // an ERROR was due
    protocol::error_code error_code_due{};
    unsigned permitted_by = 0;  // the access rules that admitted it, by generation
    bool ordered_out = false;   // by an operator
    bool excused = false;       // its ERROR may be lost: the server died, or waited long enough
    std::uint64_t token = 0;
    std::uint64_t grant_number = 0;
    std::int64_t wall_ms = 0;      // of its token
    std::int64_t wall_ms_max = 0;  // of it and all that its process took before

    // Replies, as the server writes them.
    std::uint64_t messages = 0;  // that the engine was given
    std::uint64_t unanswered = 0;
    std::uint64_t answered = 0;  // heartbeats
    std::vector<seen_frame> expected;
    std::vector<seen_frame> written;
    protocol::server_frame_decoder written_decoder;
    bool error_written = false;
    bool alert_sent = false;  // a fatal one
    bool write_short = false;
    sim_time short_write_at{0};  // the last one
    sim_time unblocked_at{0};    // when all that was held back was out
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

    // All but the push, which answers nothing.
    [[nodiscard]] std::uint64_t answers_read() const noexcept {
        return waitings_read + acquireds_read - (waitings_read > 0 && acquireds_read > 0 ? 1 : 0);
    }

    // The client.
    bool honest = false;             // it uses the library's claim
    std::optional<garbage> sends{};  // nobody honest does
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
    nanoseconds came_home{0};     // and of that when the shard of the lock had it
    bool unread_before_reading = false;
    bool word_read = false;  // close_notify or a fatal alert of the peer
    bool reads = false;      // neither given up by the kernel nor blocked by its replies
    nanoseconds went_on{0};  // a reading of the end of the server's last stop
};

// What an operator asks of the admin API: to end the owner of a lock, or one of its waiters.
struct operator_order {
    std::string lock;
    std::optional<std::uint64_t> token{};   // only the owner that has it
    std::optional<std::uint32_t> waiter{};  // not the owner, but this one
    sim_time asked_at{0};
};
enum class operator_answer : std::uint8_t {
    no_lock,
    no_owner,       // grants are withheld
    another_owner,  // whose token is another one
    no_waiter,
    ended_owner,
    ended_waiter,
};

// A lock as a listing shows it.
struct listed_lock {
    std::string name;
    std::optional<std::uint32_t> owner{};
    std::uint64_t token = 0;
    std::vector<std::uint32_t> waiters{};
};

// The books by which the invariants of rule.hpp are judged, and most of the judging.
class rules {
public:
    rules(context& world, int locks);

    [[nodiscard]] claim_record& of(std::uint32_t id);

    // ---- the server's side, in rules_server.cpp
    void process_started(unsigned process, std::int64_t wall_ms, int shards,
                         unsigned access_generation);
    // Its sessions are gone with it, and that is known.
    void process_ended();
    // In a controlled shutdown, of which the shards are told one after the other.
    void shutdown_begins();
    // What the engine was told when it asked; and that it is to ask anew, because it has received.
    void mandate_seen(int shard, bool in_force) { shard_book_of(shard).in_force = in_force; }
    void mandate_to_be_seen(int shard) { shard_book_of(shard).in_force.reset(); }
    void grants_withheld(int shard) noexcept { shard_book_of(shard).withheld = true; }
    // ---- access, in rules_access.cpp
    void access_written(unsigned generation, const access_table& table);
    // By the shard of the locks; the sweep of the waiters follows in the same turn.
    void access_adopted(int shard, unsigned generation);
    void sweep_returned(int shard);
    // ERROR 0x18 is due by the rules of that generation.
    void denied(claim_record& who, const std::string& lock, unsigned generation);
    // A client tries again what it tried with this connection.
    void retried(const claim_record& before) const;

    // ---- the way to a shard, in rules_shards.cpp
    // By the shard that read the ACQUIRE, and when the shard of the lock has it.
    void handed_over(claim_record& who, int home);
    void taken_up(claim_record& who, sim_time runs_since);
    // What is on its way to the shard, which has run since then.
    void look_for_moves(int shard, sim_time runs_since) const;
    // The first in the backlog, which might have been accepted for so long; and for how long now
    // nothing has happened that a shard can only find out by trying again.
    void left_in_backlog(const claim_record& who, sim_time waited, sim_time known) const;
    // Connections that the process has accepted and holds, its own count of them, and how many it
    // may hold.
    void descriptors(int open, int counted, int limit) const;

    // Just before the engine admits it.
    void arrived(claim_record& who, const std::string& name, const core::session& session,
                 int shard);
    // From the source, for a grant that will be stated later.
    void token_taken(int shard, std::uint64_t token, std::int64_t wall_ms);
    // Or refused, by a source that has none for leases beyond a limit. When that changes each shard
    // is told to try again.
    void tokens_limited(std::optional<milliseconds> longest);
    void all_retried(int shard);
    void fact_stated(const core::fact& what);
    void expired(const claim_record& who, const expiry_evidence& evidence);
    // Readings of the server's clock, but for the limit.
    void io_timed_out(const claim_record& who, nanoseconds reading, nanoseconds blocked_since,
                      nanoseconds limit, nanoseconds went_on);
    // Of a session whose replies are blocked; readings of the server's clock.
    void ended_by_limit(const claim_record& who, core::end_reason why, nanoseconds lease_over,
                        nanoseconds io_over) const;
    // A byte that the server has not read, and since when it might have been.
    void left_unread(const claim_record& who, nanoseconds since) const;
    // After each call of a shard's engine: the books must balance.
    void call_returned(int shard);

    // ---- the operator, in rules_operator.cpp
    // How long a shard may take to begin with what it is asked; then the operator gives up.
    static constexpr sim_time operator_patience = std::chrono::seconds{5};
    // Just before a claim is ended, if the answer says so; `who` is that claim, or the owner.
    void answered(const operator_order& what, operator_answer answer,
                  std::optional<std::uint32_t> who);
    void carried_out(std::uint32_t id) const;
    void listed(const listed_lock& what) const;
    // By one shard, which had begun then.
    void listing_done(int shard, sim_time began, const std::vector<listed_lock>& found) const;

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
    void judged(int client, const claim_record& who, bool deadline_passed, bool gave_up) const;
    void loser_stopped(int client, const claim_record& who, bool still_believes);
    void resource_written(const claim_record& by, std::uint64_t token);

private:
    struct lock_book {
        std::string name;
        int home = -1;  // the shard that has its table, since a claim on it arrived
        sim_time exists_since{0};
        std::vector<std::uint32_t> line;  // who arrived and has not ended, in that order
        std::optional<std::uint32_t> owner;
        std::uint64_t resource_token = 0;
        const claim_record* resource_by = nullptr;  // whose token that is
    };

    // What the rules know of one shard of the process that lives.
    struct shard_book {
        bool withheld = false;
        int retries_due = 0;
        bool sweeping = false;
        unsigned generation = 0;       // of its access rules
        std::uint64_t last_token = 0;  // that it took
        std::int64_t last_wall_ms = 0;
        std::int64_t wall_ms_max = 0;  // of the process, by then
        std::optional<bool> in_force;  // its mandate, if it asked in this call
        std::vector<claim_record*> touched;
    };

    // What tokens a process took.
    struct taken_tokens {
        std::int64_t wall_ms_max = 0;
        std::uint64_t last = 0;
    };

    [[nodiscard]] shard_book& shard_book_of(int shard) {
        return shards_[static_cast<std::size_t>(shard)];
    }
    [[nodiscard]] const shard_book& shard_book_of(int shard) const {
        return shards_[static_cast<std::size_t>(shard)];
    }
    [[nodiscard]] int book_of(const std::string& name);
    // Null if the lock does not exist.
    [[nodiscard]] const lock_book* find_book(const std::string& name) const;
    [[nodiscard]] operator_answer right_answer(const operator_order& what) const;
    [[noreturn]] void fail(rule broken, const claim_record& who, const std::string& how) const;
    void granted(const core::granted& what);
    void ended(const core::ended& what);
    void acknowledged(const core::acknowledged& what);
    void check_refusal(const claim_record& who, protocol::error_code code) const;
    void check_mandate(const claim_record& who, const std::string& how) const;
    void check_sent_away(const claim_record& who) const;
    void check_idle(int shard) const;
    void check_turn(const claim_record& who);
    [[nodiscard]] bool may_claim(const claim_record& who, unsigned generation) const;
    void check_permitted(const claim_record& who) const;
    void check_move(const claim_record& who, sim_time runs_since) const;
    void check_drain(const claim_record& who) const;
    void touch(claim_record& who);
    void compare_frames(claim_record& who);
    void read_frame(claim_record& who, const protocol::server_frame& frame);
    void check_ever_owned(const claim_record& who) const;
    void believes_after_end(claim_record& who, std::span<const belief> all);
    void check_one_believer(std::span<const belief> who) const;
    [[nodiscard]] static bool tokens_promise_order(const claim_record& earlier,
                                                   const claim_record& later);

    context* world_;
    std::vector<lock_book> locks_;
    std::deque<claim_record> records_;  // by connection
    std::vector<std::uint32_t> moving_;
    std::vector<shard_book> shards_;
    std::map<unsigned, access_table> access_;  // by generation; empty if there are no rules

    unsigned process_ = 0;
    std::optional<sim_time> shutdown_began_;
    taken_tokens tokens_;                      // of this process, so far
    std::vector<taken_tokens> tokens_before_;  // of each earlier one
    std::uint64_t grants_ = 0;
    std::optional<milliseconds> longest_lease_;  // that the source has tokens for
};

}  // namespace monolock::simulation
