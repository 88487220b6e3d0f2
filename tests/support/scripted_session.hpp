#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/session_port.hpp"
#include "protocol/frames.hpp"
#include "support/journal.hpp"

namespace monolock::support {

class scripted_session;
using roster = std::map<std::uint64_t, std::unique_ptr<scripted_session>>;

// A connection whose receives find and whose sends take what the test says. It destroys itself when
// it is retired, as a server's may, so that a sanitizer finds whoever touches it later; and it
// holds the engine to the contract of connected_session.
class scripted_session final : public core::connected_session {
public:
    static constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

    scripted_session(core::session_id id, journal& log, roster& owner) noexcept
        : connected_session{id}, log_{&log}, owner_{&owner} {}

    // What the coming receives find, in this order; after that they find nothing.
    void arrives(std::string bytes) { input_.push_back(std::move(bytes)); }
    void ends_with(core::receive_status how) { input_end_ = how; }
    // What the coming sends take, all together.
    void takes(std::size_t bytes) noexcept { room_ = bytes; }
    // What the coming sends report instead.
    void sending_ends_with(core::send_status how) noexcept { output_end_ = how; }
    // Happens within each receive, before it looks for input: time may pass there.
    void during_receive(std::function<void()> what) { during_receive_ = std::move(what); }

    [[nodiscard]] bool has_input() const noexcept {
        return !input_.empty() || input_end_ != core::receive_status::nothing;
    }
    [[nodiscard]] bool can_send() const noexcept {
        return room_ > 0 || output_end_ != core::send_status::sent;
    }
    [[nodiscard]] int sends() const noexcept { return sends_; }
    [[nodiscard]] int receives() const noexcept { return receives_; }
    // What the peer has of the server's frames, in order.
    [[nodiscard]] const std::vector<protocol::server_frame>& frames() const noexcept {
        return frames_;
    }

    // Whether the engine asked, and from now on has not.
    [[nodiscard]] bool take_readable_request() noexcept {
        return std::exchange(awaits_readable_, false);
    }
    [[nodiscard]] bool take_writable_request() noexcept {
        return std::exchange(awaits_writable_, false);
    }
    [[nodiscard]] bool awaits_readable() const noexcept { return awaits_readable_; }
    [[nodiscard]] bool awaits_writable() const noexcept { return awaits_writable_; }

    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept override {
        MONOLOCK_ASSERT(connected_);
        MONOLOCK_ASSERT(!into.empty());
        ++receives_;
        if (during_receive_) {
            during_receive_();
        }
        if (input_.empty()) {
            return {.status = input_end_};
        }
        std::string& next = input_.front();
        const std::size_t count = std::min(into.size(), next.size());
        std::ranges::copy(std::as_bytes(std::span{next}).first(count), into.begin());
        next.erase(0, count);
        if (next.empty()) {
            input_.pop_front();
        }
        return {.status = core::receive_status::bytes, .count = count};
    }

    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept override {
        MONOLOCK_ASSERT(connected_);
        MONOLOCK_ASSERT(!bytes.empty());
        ++sends_;
        if (output_end_ != core::send_status::sent) {
            tell(output_end_ == core::send_status::silence ? " <- (silence)" : " <- (broken)");
            return {.status = output_end_};
        }
        const std::size_t count = std::min(bytes.size(), room_);
        if (room_ != everything) {
            room_ -= count;
        }
        tell(" <-" + decode(bytes.first(count)) + (count < bytes.size() ? " (blocked)" : ""));
        return {.status = core::send_status::sent, .count = count};
    }

    void await_readable() override {
        MONOLOCK_ASSERT(connected_);
        awaits_readable_ = true;
    }
    void await_writable() override {
        MONOLOCK_ASSERT(connected_);
        awaits_writable_ = true;
    }

    void drop_connection() noexcept override {
        MONOLOCK_ASSERT(connected_);
        connected_ = awaits_readable_ = awaits_writable_ = false;
        tell(" dropped");
    }

    void retire(core::closing how) noexcept override {
        MONOLOCK_ASSERT(state() == core::session_state::gone);
        switch (how) {
            case core::closing::plain:
                tell(" closed");
                break;
            case core::closing::abort:
                tell(" aborted");
                break;
            case core::closing::linger:
                tell(" lingers");
                break;
        }
        owner_->erase(id().value);
    }

private:
    void tell(std::string what) { log_->add(journal::kind::wire, number(id()) + what); }

    // The frames that these bytes complete: " WAITING ACQUIRED 7".
    std::string decode(std::span<const std::byte> bytes) {
        std::string text;
        while (!bytes.empty()) {
            std::size_t used = 0;
            const auto status = decoder_.feed(bytes, used);
            MONOLOCK_ASSERT(status != protocol::server_frame_decoder::status::malformed);
            bytes = bytes.subspan(used);
            if (status == protocol::server_frame_decoder::status::frame) {
                frames_.push_back(decoder_.take_frame());
                text += " " + text_of_frame(frames_.back());
            }
        }
        return text;
    }

    static std::string text_of_frame(const protocol::server_frame& frame) {
        if (const auto* const grant = std::get_if<protocol::acquired>(&frame)) {
            return "ACQUIRED " + std::to_string(grant->token.value);
        }
        if (const auto* const refusal = std::get_if<protocol::error>(&frame)) {
            return "ERROR " + error_text(refusal->code, refusal->reason);
        }
        return "WAITING";
    }

    journal* log_;
    roster* owner_;
    std::deque<std::string> input_;
    core::receive_status input_end_ = core::receive_status::nothing;
    std::size_t room_ = everything;
    core::send_status output_end_ = core::send_status::sent;
    std::function<void()> during_receive_;
    bool connected_ = true;
    bool awaits_readable_ = false;
    bool awaits_writable_ = false;
    int sends_ = 0;
    int receives_ = 0;
    protocol::server_frame_decoder decoder_;
    std::vector<protocol::server_frame> frames_;
};

}  // namespace monolock::support
