#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/lock_table.hpp"
#include "core/session_port.hpp"
#include "protocol/frames.hpp"

namespace monolock::core {

// The path of every message of every session of one shard: what is read, when the clock is, what is
// answered, who is ended and why. It drives the lock table and turns its facts into frames. It does
// I/O and reads the clock only through ports, so that the server and the simulator run this very
// code. One thread owns it.
//
// Without a mandate it answers nothing but ERROR 0x01: who says something is sent away, what it
// holds back stays. Then only withhold_grants and close_all make sense. The token source must
// refuse, too.
//
// The two clock rules (docs/protocol.md, "Leases") live here and nowhere else:
//  1. last_seen is a reading taken after the receive that returned the bytes.
//  2. A lease is judged with a reading taken before a last receive on that session that found
//     nothing. The same holds for the I/O timeout and a last send.
class session_engine {
public:
    struct options {
        nanoseconds io_timeout{std::chrono::seconds{5}};  // of a blocked write; above zero
        mandate_port* mandate = nullptr;                  // null: in force for ever
    };

    // The most that is read from one session before the others have their turn.
    static constexpr std::size_t receive_bytes_max = 512;

    // The ports and the source must outlive the engine.
    session_engine(token_source& tokens, clock_port& clock, observer_port& observer,
                   options settings) noexcept;

    // Admits a claim. `received_at` is a reading taken after the receive that returned the last
    // byte of the ACQUIRE; `rest` is what that receive returned beyond it. `who` must stay in place
    // until it is retired, which can happen within this call. Whether the mandate is in force is
    // the caller's to ask, after that receive.
    void admit(connected_session& who, const protocol::acquire_request& request, name_hash hash,
               time_point received_at, std::span<const std::byte> rest);

    // The answers to await_readable and await_writable. Calls for a session that no longer waits
    // for this are ignored, so a late wake-up does no harm; not to be called once it is retired.
    void readable(connected_session& who);
    void writable(connected_session& who);

    // Looks at up to `budget` sessions, and judges those whose lease or I/O timeout has passed.
    // Says whether more may be due, so that a shard can let its connections have a turn in between.
    [[nodiscard]] bool judge(std::size_t budget);

    // When judge() is to be called next.
    [[nodiscard]] std::optional<time_point> next_deadline() const noexcept;

    // See lock_table::withhold_grants and grant_again.
    void withhold_grants() noexcept { table_.withhold_grants(); }
    void grant_again() noexcept { table_.grant_again(); }

    // The locks that the token source refused, and may grant now: see lock_table::retry_grant.
    // Retries up to `budget` of them.
    [[nodiscard]] std::size_t idle_count() const noexcept { return table_.idle_count(); }
    void retry_grants(std::size_t budget);

    // Ends a session of this engine with an ERROR.
    void close_with_error(connected_session& who, end_reason why, protocol::error_code code);

    // Whoever waits and is not allowed to any more: ERROR 0x18, and out of the queue, all within
    // this call. So who was allowed no more is never granted; who is, may be, if it comes to stand
    // at the head of an idle lock. Owners are not asked. Says how many left.
    std::size_t revoke_waiters(const std::function<bool(const connected_session& who)>& is_allowed);

    // The owner of the lock, or null.
    [[nodiscard]] connected_session* owner_of(std::string_view name, name_hash hash) noexcept;
    // The waiter of the lock that has this id, or null.
    [[nodiscard]] connected_session* waiter_of(std::string_view name, name_hash hash,
                                               session_id id) noexcept;

    // Ends up to `budget` sessions with an ERROR; says whether there are more. Grants must be
    // withheld, or the sessions would inherit each other's locks on the way.
    [[nodiscard]] bool close_all(std::size_t budget, protocol::error_code code);

    [[nodiscard]] const lock_table& table() const noexcept { return table_; }

private:
    using flow = connected_session::flow;
    using backlogs = boost::intrusive::list<output_backlog>;

    static connected_session& connected(session& who) noexcept {
        return static_cast<connected_session&>(who);  // only admit() brings sessions in
    }

    [[nodiscard]] bool may_act() noexcept {
        return settings_.mandate == nullptr || settings_.mandate->in_force();
    }
    void take_messages(connected_session& who, std::span<const std::byte> bytes, time_point now);
    void receive_once(connected_session& who);
    void judge_lease(connected_session& who, time_point now);
    void judge_backlog(connected_session& who, time_point now);

    void deliver_facts();
    void frame_of(const fact& what);
    void push_frame(session& who, std::span<const std::byte> frame);
    void write_pending_frames();

    void write(connected_session& who, std::span<const std::byte> bytes);
    void hold_back(connected_session& who, std::span<const std::byte> bytes);
    bool flush_backlog(connected_session& who);
    void place_by_time(output_backlog& backlog) noexcept;
    void drop_backlog(connected_session& who) noexcept;

    void refuse(connected_session& who, end_reason why, const protocol::malformed& refusal);
    void expire(connected_session& who, time_point now);
    void finish(connected_session& who, end_reason why, closing how);
    void mute(connected_session& who) noexcept;
    void doom(connected_session& who);
    void end_doomed();

    lock_table table_;
    clock_port* clock_;
    observer_port* observer_;
    options settings_;

    backlogs blocked_;  // the longest blocked first
    std::vector<connected_session*> doomed_;

    // Reused from call to call, so that a heartbeat allocates nothing.
    fact_list facts_;
    std::array<std::byte, receive_bytes_max> input_{};
    std::vector<std::byte> frames_;  // for frames_to_, not written yet
    connected_session* frames_to_ = nullptr;
};

}  // namespace monolock::core
