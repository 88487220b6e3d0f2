// The client's claim against an arbitrary server, network and clock. A small model beside it keeps
// the rules of docs/protocol.md ("The client's duties") in the plainest terms: what was sent when,
// what has been answered, and until when that confirms the claim.

#include "client/claim.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"

namespace {

using monolock::detail::claim;
using monolock::detail::claim_state;
using monolock::detail::claim_time;
using monolock::fuzz::choices;
using monolock::fuzz::require;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
namespace protocol = monolock::protocol;

constexpr protocol::fencing_token granted{0x0102030405060708};

// What the claim must believe.
struct model {
    milliseconds lease;
    std::optional<claim_time> sent_at{};       // of the message in flight or last sent
    std::optional<claim_time> confirmed_at{};  // of the last answered one
    bool in_flight = false;                    // wholly sent and unanswered
    bool push_due = false;                     // told WAITING, the pushed ACQUIRED has not come

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
                require(claim_.state() == claim_state::lost || !past_deadline());
                break;
            case 7:
                if (choose.next() == 0) {
                    claim_.close();
                    require(claim_.state() == claim_state::lost);
                }
                break;
        }
        check(before, token_before);
    }

private:
    void send(std::uint8_t kernel_takes) {
        const auto bytes = claim_.output(now_);
        if (bytes.empty()) {
            return;
        }
        require(claim_.state() != claim_state::lost);
        require(!whole_frames_ || !model_.in_flight);  // one message at a time
        if (unsent_ == 0) {  // a new message: an ACQUIRE first, then heartbeats only
            require(!model_.sent_at || bytes.size() == 1);
            require(!past_deadline());
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
        const bool fair = model_.in_flight && claim_.state() != claim_state::held;
        claim_.receive(protocol::waiting_frame, now_);
        if (claim_.state() == claim_state::lost || !whole_frames_) {
            return;
        }
        require(fair);  // anything else must have ended the claim
        model_.push_due = true;
        model_.answered();
    }

    void deliver_acquired(protocol::fencing_token token) {
        claim_.receive(protocol::encode_acquired(token), now_);
        if (claim_.state() == claim_state::lost || !whole_frames_) {
            return;
        }
        if (model_.push_due) {
            model_.push_due = false;  // the push answers nothing
        } else {
            require(model_.in_flight);  // an answer to nothing must have ended the claim
            model_.answered();
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
            require(claim_.confirmed_until() == from + nanoseconds{model_.lease} * 4 / 5);
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
