#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/fencing_token.hpp"
#include "protocol/frames.hpp"
#include "protocol/heartbeat_schedule.hpp"

namespace monolock::detail {

// The time that a claim is handed. It has no now(): the shell uses a clock that goes on through
// suspend, the simulator one that drifts.
struct claim_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<claim_clock>;
    static constexpr bool is_steady = true;
};
using claim_time = claim_clock::time_point;

// requesting -> waiting -> held -> lost, in that order, each of the middle two possibly left out.
enum class claim_state { requesting, waiting, held, lost };

enum class loss_kind {
    acquire_timeout,     // the deadline passed and the ACQUIRE was still unanswered
    heartbeat_timeout,   // the deadline passed
    connection_closed,   // the shell said so
    protocol_violation,  // see violation
    server_error,        // see code and reason
};

enum class violation {
    none,
    unsolicited_answer,      // WAITING or ACQUIRED with nothing in flight
    waiting_after_acquired,  // never back
    zero_token,
    changed_token,
    unknown_type,  // a byte that no frame starts with
    tls_alert,     // the same, and the server's first: what a TLS server says to plain bytes
};

// Why a claim is lost.
struct claim_loss {
    loss_kind kind = loss_kind::connection_closed;
    claim_state during = claim_state::requesting;  // the state that it was lost in; never lost
    violation what = violation::none;
    protocol::error_code code{};  // of a server_error
    std::string reason{};         // of a server_error, as sent

    friend bool operator==(const claim_loss&, const claim_loss&) = default;
};

// One claim on one lock over one connection, seen from the client: what to send and when, what the
// server's bytes mean, and until when the client may believe. Pure: bytes and time go in; the next
// bytes, the state and the next wake-up come out. docs/protocol.md, "The client's duties".
//
// Whoever drives it (the library's driver, the simulator) takes turns, at each readiness of the
// socket and at next_wakeup():
//
//     now = clock reading
//     receive(bytes, now)  for all that a non-blocking receive finds after that reading, until it
//                          finds nothing;  close() at the end of file or an error
//     judge(now)           with that same reading: an answer that was in the socket has been read
//     send(output(fresh clock reading)), transmitted(what the kernel took)
//
// A reading taken before a receive can only make the claim give up later than a fresh one would,
// and that is harmless because the belief is judged anew wherever it is used: owns(now) with a
// fresh reading when the acquire returns, before the work starts and when it ends.
//
// Invariants:
//  1. confirmed_until() = send time of the last answered message + 0.8 x lease; while nothing has
//  been
//     answered, of the ACQUIRE. The send time is read before the first byte goes to the kernel.
//  2. At most one message is in flight.
//  3. The first ACQUIRED after a WAITING answers nothing; every other WAITING or ACQUIRED answers
//  the
//     message in flight.
//  4. Once lost, lost: nothing is sent and nothing changes any more.
//  5. The token is set when the claim is granted, is not zero, and never changes.
class claim {
public:
    // The name must be a lock name and the lease within protocol::lease_min and lease_max.
    claim(std::string_view name, std::chrono::milliseconds lease);

    // Bytes to hand to the kernel, possibly none. A heartbeat that is due becomes one here. `now`
    // is a reading taken before the bytes are handed over; the first call that returns bytes of a
    // message makes it the message's send time. Nothing is sent for a claim past its deadline. The
    // bytes stay valid until the next call that is not const.
    [[nodiscard]] std::span<const std::byte> output(claim_time now);

    // The kernel took the first `count` bytes of the last output(); at most that many.
    void transmitted(std::size_t count);

    // Bytes from the server, in any split. `now` is a reading taken before the receive that
    // returned them. Bytes that come after the claim is lost are ignored.
    void receive(std::span<const std::byte> bytes, claim_time now);

    // The connection is over: end of file, reset, or any failure. Not to be called before all bytes
    // that arrived were handed to receive(): an ERROR may be among them.
    void close();

    // Gives up if `now` has reached the deadline. `now` is a reading taken before a last receive
    // that found nothing.
    void judge(claim_time now);

    [[nodiscard]] claim_state state() const noexcept { return state_; }

    // Whether the client may believe, at `now`, that it owns the lock.
    [[nodiscard]] bool owns(claim_time now) const noexcept;

    // The end of what has been confirmed; nothing before the ACQUIRE has a send time.
    [[nodiscard]] std::optional<claim_time> confirmed_until() const noexcept;

    // Once granted; kept after the loss.
    [[nodiscard]] std::optional<protocol::fencing_token> token() const noexcept { return token_; }

    // Whether the server has admitted the claim: it answered WAITING or ACQUIRED at least once.
    [[nodiscard]] bool admitted() const noexcept { return admitted_; }

    // Whether the server has told it WAITING: then it was queued, even if it is granted by now.
    [[nodiscard]] bool was_queued() const noexcept { return was_queued_; }

    // In state lost.
    [[nodiscard]] const claim_loss& loss() const noexcept { return loss_; }

    // When to take the next turn if the socket says nothing: the deadline, or before it the time of
    // the next heartbeat. Nothing once lost, and before the ACQUIRE has a send time.
    [[nodiscard]] std::optional<claim_time> next_wakeup() const noexcept;

    [[nodiscard]] std::chrono::nanoseconds smoothed_rtt() const noexcept { return rtt_.smoothed(); }

private:
    // What has become of the last message: the ACQUIRE until the first answer, then a heartbeat.
    enum class flight {
        unsent,    // the kernel has taken the first taken_ bytes of it, not all
        sent,      // wholly handed over and not answered
        answered,  // nothing is in flight
    };

    void take(const protocol::server_frame& frame, claim_time now);
    void take_waiting(claim_time now);
    void take_acquired(protocol::fencing_token token, claim_time now);
    void take_error(const protocol::error& frame);
    void answer(claim_time now);
    void lose(claim_loss loss);
    void violate(violation what);
    [[nodiscard]] std::span<const std::byte> untaken() const noexcept;
    [[nodiscard]] claim_time next_heartbeat() const noexcept;

    std::chrono::milliseconds lease_;
    claim_state state_ = claim_state::requesting;
    bool admitted_ = false;
    bool was_queued_ = false;

    protocol::acquire_frame_bytes acquire_;
    flight flight_ = flight::unsent;
    std::size_t taken_ = 0;
    std::optional<claim_time> sent_at_;       // of the last message; nothing before the ACQUIRE's
    std::optional<claim_time> confirmed_at_;  // of the last answered message

    protocol::rtt_estimate rtt_;
    protocol::server_frame_decoder decoder_;
    std::optional<protocol::fencing_token> token_;
    claim_loss loss_;
};

}  // namespace monolock::detail
