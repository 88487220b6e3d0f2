// The client's claim against an arbitrary server, network and clock. A small model beside it keeps
// the rules of docs/protocol.md ("The client's duties") in the plainest terms: what was sent when,
// what has been answered, until when that confirms the claim, when the next message is due, and
// what ends it, which nothing else may.

#include "client/claim.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"

namespace {

using monolock::detail::claim;
using monolock::detail::claim_state;
using monolock::detail::claim_time;
using monolock::detail::loss_kind;
using monolock::fuzz::choices;
using monolock::fuzz::require;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
namespace protocol = monolock::protocol;

constexpr protocol::fencing_token granted{0x0102030405060708};
constexpr protocol::fencing_token of_another{0x0102030405060709};

// What the claim must believe.
struct model {
    milliseconds lease;
    std::optional<claim_time> sent_at{};       // of the message in flight or last sent
    std::optional<claim_time> confirmed_at{};  // of the last answered one
    bool in_flight = false;                    // wholly sent and unanswered
    bool push_due = false;                     // told WAITING, the pushed ACQUIRED has not come

    // From send to send: a quarter of the lease, less if the way is long.
    [[nodiscard]] nanoseconds interval_max() const { return nanoseconds{lease} / 4; }
    [[nodiscard]] nanoseconds interval_min() const {
        return std::min<nanoseconds>(interval_max(), milliseconds{100});
    }
    void answered() {
        confirmed_at = sent_at;
        in_flight = false;
    }
};

class dialogue {
public:
    explicit dialogue(milliseconds lease) : claim_{"nightly", lease}, model_{.lease = lease} {}

    void step(choices& choose) {
        const claim_state before = claim_.state();
        const auto token_before = claim_.token();
        switch (choose.next() % 8) {
            case 0:
                now_ += model_.lease * choose.next() / 256;
                break;
            case 1:
                if (const auto wake = claim_.next_wakeup()) {
                    now_ = std::max(now_, *wake);
                }
                break;
            case 2:
                send(choose.next());
                break;
            case 3:
                deliver_waiting();
                break;
            case 4:
                deliver_acquired(granted);
                break;
            case 5:
                deliver_noise(choose);
                break;
            case 6:
                claim_.judge(now_);
                require(before == claim_state::lost ||
                        (claim_.state() == claim_state::lost) == past_deadline());
                break;
            case 7:
                deliver_end(choose.next(), choose);
                break;
        }
        check(before, token_before);
    }

private:
    void send(std::uint8_t kernel_takes) {
        const auto bytes = claim_.output(now_);
        if (bytes.empty()) {
            const bool nothing_due = claim_.state() == claim_state::lost || past_deadline() ||
                                     !whole_frames_ || model_.in_flight ||
                                     now_ - *model_.sent_at < model_.interval_max();
            require(nothing_due);
            return;
        }
        require(claim_.state() != claim_state::lost);
        require(!whole_frames_ || !model_.in_flight);  // one message at a time
        if (unsent_ == 0) {  // a new message: an ACQUIRE first, then heartbeats only
            require(!model_.sent_at || bytes.size() == 1);
            require(!past_deadline());
            require(!model_.sent_at || now_ - *model_.sent_at >= model_.interval_min());
            model_.sent_at = now_;
        } else {
            require(bytes.size() == unsent_);
        }
        const std::size_t taken = std::min<std::size_t>(bytes.size(), kernel_takes);
        unsent_ = bytes.size() - taken;
        claim_.transmitted(taken);
        model_.in_flight = unsent_ == 0;
    }

    void deliver_waiting() {
        const bool was_lost = claim_.state() == claim_state::lost;
        const bool fair = model_.in_flight && claim_.state() != claim_state::held;
        claim_.receive(protocol::waiting_frame, now_);
        if (was_lost || !whole_frames_) {
            return;
        }
        require(fair == (claim_.state() != claim_state::lost));  // anything else ends the claim
        if (!fair) {
            return;
        }
        model_.push_due = true;
        model_.answered();
    }

    void deliver_acquired(protocol::fencing_token token) {
        const bool was_lost = claim_.state() == claim_state::lost;
        const bool its_own = token.value != 0 && claim_.token().value_or(token) == token;
        const bool fair = its_own && (model_.push_due || model_.in_flight);
        claim_.receive(protocol::encode_acquired(token), now_);
        if (was_lost || !whole_frames_) {
            return;
        }
        require(fair == (claim_.state() == claim_state::held));
        require(fair == (claim_.state() != claim_state::lost));  // nothing to answer ends the claim
        if (!fair) {
            return;
        }
        require(claim_.token() == token);
        if (model_.push_due) {
            model_.push_due = false;  // the push answers nothing
        } else {
            model_.answered();
        }
    }

    // The end of the connection, an ERROR, or a token that is none of this claim's.
    void deliver_end(std::uint8_t what, choices& choose) {
        const bool was_lost = claim_.state() == claim_state::lost;
        if (what == 0) {
            claim_.close();
            require(claim_.state() == claim_state::lost);
            require(was_lost || claim_.loss().kind == loss_kind::connection_closed);
        } else if (what == 1) {
            deliver_acquired(protocol::fencing_token{0});
        } else if (what == 2) {
            deliver_acquired(of_another);
        } else if (what < 8) {
            const auto code = protocol::error_code{choose.next()};
            const std::string_view reason = choose.text(what - 3U);
            claim_.receive(protocol::encode_error(code, reason).bytes(), now_);
            if (!was_lost && whole_frames_) {
                require(claim_.state() == claim_state::lost);
                require(claim_.loss().kind == loss_kind::server_error);
                require(claim_.loss().code == code && claim_.loss().reason == reason);
            }
        }
    }

    // Bytes of no particular shape: from here on frames may be cut, and the model stands aside.
    void deliver_noise(choices& choose) {
        std::array<std::byte, 4> noise{};
        const std::size_t size = choose.next() % (noise.size() + 1);
        std::ranges::generate(noise, [&] { return std::byte{choose.next()}; });
        if (size > 0) {
            whole_frames_ = false;
            claim_.receive(std::span{noise}.first(size), now_);
        }
    }

    [[nodiscard]] bool past_deadline() const {
        const auto until = claim_.confirmed_until();
        return until && now_ >= *until;
    }

    void check(claim_state before, std::optional<protocol::fencing_token> token_before) const {
        const claim_state after = claim_.state();
        require(after >= before);  // never back
        require(!token_before || claim_.token() == token_before);
        require(after != claim_state::held || (claim_.token() && claim_.token()->value != 0));
        require(!claim_.owns(now_) || (after == claim_state::held && !past_deadline()));
        if (after == claim_state::lost) {
            require(!claim_.next_wakeup());
            return;
        }
        require(claim_.next_wakeup().has_value() == model_.sent_at.has_value());
        if (whole_frames_ && model_.sent_at) {
            const claim_time from = model_.confirmed_at.value_or(*model_.sent_at);
            const claim_time deadline = from + nanoseconds{model_.lease} * 4 / 5;
            require(claim_.confirmed_until() == deadline);
            const bool beats_next = !model_.in_flight && unsent_ == 0;
            const auto wake = *claim_.next_wakeup();
            require(wake <= deadline);
            require(wake == deadline ||
                    (beats_next && wake >= *model_.sent_at + model_.interval_min()));
            require(!beats_next || wake <= *model_.sent_at + model_.interval_max());
        }
    }

    claim claim_;
    model model_;
    claim_time now_{std::chrono::hours{1}};
    std::size_t unsent_ = 0;  // bytes of the message under way that the kernel did not take
    bool whole_frames_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices choose{data, size};
    dialogue talk{milliseconds{1 + choose.next() * 40}};
    while (choose.any()) {
        talk.step(choose);
    }
    return 0;
}
