#include "client/claim.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace monolock::detail {

namespace {

// The first byte of an alert record (RFC 8446, section 5.1). No frame starts with it.
constexpr std::uint8_t tls_alert_type = 0x15;

}  // namespace

claim::claim(std::string_view name, std::chrono::milliseconds lease)
    : lease_{lease},
      acquire_{protocol::encode_acquire(static_cast<std::uint32_t>(lease.count()), name)} {}

std::span<const std::byte> claim::output(claim_time now) {
    const auto deadline = confirmed_until();
    if (state_ == claim_state::lost || (deadline && now >= *deadline)) {
        return {};  // an answer to a message sent past the deadline must not revive the claim
    }
    if (flight_ == flight::answered && now >= next_heartbeat()) {
        flight_ = flight::unsent;
        taken_ = 0;
        sent_at_ = now;
    }
    if (flight_ != flight::unsent) {
        return {};
    }
    if (!sent_at_) {
        sent_at_ = now;
    }
    return untaken();
}

void claim::transmitted(std::size_t count) {
    if (state_ == claim_state::lost || flight_ != flight::unsent) {
        return;
    }
    taken_ += count;
    if (untaken().empty()) {
        flight_ = flight::sent;
    }
}

void claim::receive(std::span<const std::byte> bytes, claim_time now) {
    while (!bytes.empty() && state_ != claim_state::lost) {
        std::size_t used = 0;
        switch (decoder_.feed(bytes, used)) {
            case protocol::server_frame_decoder::status::need_more:
                return;
            case protocol::server_frame_decoder::status::frame:
                take(decoder_.take_frame(), now);
                break;
            case protocol::server_frame_decoder::status::malformed:
                violate(!admitted_ && decoder_.unknown_type() == tls_alert_type
                            ? violation::tls_alert
                            : violation::unknown_type);
                break;
        }
        bytes = bytes.subspan(used);
    }
}

void claim::close() {
    lose({.kind = loss_kind::connection_closed});
}

void claim::judge(claim_time now) {
    const auto deadline = confirmed_until();
    if (deadline && now >= *deadline) {
        lose({.kind = state_ == claim_state::requesting ? loss_kind::acquire_timeout
                                                        : loss_kind::heartbeat_timeout});
    }
}

bool claim::owns(claim_time now) const noexcept {
    return state_ == claim_state::held && now < *confirmed_until();
}

std::optional<claim_time> claim::confirmed_until() const noexcept {
    const auto& from = confirmed_at_ ? confirmed_at_ : sent_at_;
    if (!from) {
        return std::nullopt;
    }
    return *from + protocol::client_timeout(lease_);
}

std::optional<claim_time> claim::next_wakeup() const noexcept {
    const auto deadline = confirmed_until();
    if (state_ == claim_state::lost || !deadline) {
        return std::nullopt;
    }
    return flight_ == flight::answered ? std::min(next_heartbeat(), *deadline) : *deadline;
}

void claim::take(const protocol::server_frame& frame, claim_time now) {
    if (std::holds_alternative<protocol::waiting>(frame)) {
        take_waiting(now);
    } else if (const auto* acquired = std::get_if<protocol::acquired>(&frame)) {
        take_acquired(acquired->token, now);
    } else {
        take_error(std::get<protocol::error>(frame));
    }
}

void claim::take_waiting(claim_time now) {
    if (state_ == claim_state::held) {
        violate(violation::waiting_after_acquired);
        return;
    }
    if (flight_ != flight::sent) {
        violate(violation::unsolicited_answer);
        return;
    }
    answer(now);
    state_ = claim_state::waiting;
    was_queued_ = true;
}

void claim::take_acquired(protocol::fencing_token token, claim_time now) {
    if (token.value == 0) {
        violate(violation::zero_token);
        return;
    }
    if (state_ == claim_state::waiting) {
        // The pushed promotion. A heartbeat in flight stays unanswered: the server may never have
        // seen it, and to count from it would outlive the lease.
        state_ = claim_state::held;
        token_ = token;
        return;
    }
    if (token_ && *token_ != token) {
        violate(violation::changed_token);
        return;
    }
    if (flight_ != flight::sent) {
        violate(violation::unsolicited_answer);
        return;
    }
    answer(now);
    state_ = claim_state::held;
    token_ = token;
}

void claim::take_error(const protocol::error& frame) {
    lose({.kind = loss_kind::server_error, .code = frame.code, .reason = frame.reason});
}

void claim::answer(claim_time now) {
    flight_ = flight::answered;
    admitted_ = true;
    confirmed_at_ = sent_at_;
    rtt_.add(std::max(now - *sent_at_, std::chrono::nanoseconds{0}));
}

void claim::lose(claim_loss loss) {
    if (state_ == claim_state::lost) {
        return;
    }
    loss_ = std::move(loss);
    loss_.during = state_;
    state_ = claim_state::lost;
}

void claim::violate(violation what) {
    lose({.kind = loss_kind::protocol_violation, .what = what});
}

std::span<const std::byte> claim::untaken() const noexcept {
    const std::span<const std::byte> message =
        admitted_ ? std::span<const std::byte>{protocol::heartbeat_frame} : acquire_.bytes();
    return message.subspan(taken_);
}

claim_time claim::next_heartbeat() const noexcept {
    return *sent_at_ + protocol::heartbeat_interval(lease_, rtt_.smoothed());
}

}  // namespace monolock::detail
