// The server's session engine against arbitrary peers, kernel and clock: bytes that come late or
// not at all, replies that block, resets, silence, pauses between any two steps. After each step
// the lock table's invariants hold; queues are served in order, nobody outlives a lease that was
// judged, whoever is revoked leaves ungranted, every end has the cause that its reason names,
// nobody is granted while tokens are refused or grants withheld, and each session's replies are
// judged when it ends.

#include "core/session_engine.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"
#include "protocol/frames.hpp"

namespace {

using namespace monolock::core;  // NOLINT(google-build-using-namespace): a model of that namespace
using monolock::fuzz::choices;
using monolock::fuzz::require;
namespace protocol = monolock::protocol;

constexpr std::size_t capacity_unbounded = 1'000'000;
// Bytes that are no message of any peer's here.
constexpr std::uint8_t revoke_choice = 0xFF;
constexpr std::uint8_t tokens_choice = 0xFE;
constexpr std::uint8_t retry_choice = 0xFD;
constexpr std::uint8_t withhold_choice = 0xFC;
constexpr std::uint8_t close_all_choice = 0xFB;
constexpr std::chrono::milliseconds io_timeout{100};

// A clock that passes at every reading, by as much as the fuzzer said last: a pause can fall
// between any two readings.
class fuzz_clock final : public clock_port {
public:
    time_point now() noexcept override {
        reading_ += pause;
        return reading_;
    }
    [[nodiscard]] time_point peek() const noexcept { return reading_; }
    void pass(nanoseconds span) noexcept { reading_ += span; }

    nanoseconds pause{0};

private:
    time_point reading_{std::chrono::hours{1}};
};

class counting_tokens final : public token_source {
public:
    std::optional<protocol::fencing_token> next(std::chrono::milliseconds) noexcept override {
        return refuses ? std::nullopt : std::optional{protocol::fencing_token{++last_}};
    }
    [[nodiscard]] std::uint64_t given() const noexcept { return last_; }

    bool refuses = false;  // as before a grant delay is over

private:
    std::uint64_t last_ = 0;
};

// Destroys itself when it is retired, as a server's session may: whoever touches it later is found.
class peer final : public connected_session {
public:
    using place = std::unique_ptr<peer>;

    peer(session_id id, fuzz_clock& clock, place& self)
        : connected_session{id}, clock_{&clock}, self_{&self} {}

    // --- what the world does to it
    std::vector<std::byte> inbox;       // arrived, not received
    bool heartbeat_at_receive = false;  // one more byte arrives just before the next receive
    bool closed = false;                // after the inbox: end of file
    bool silent = false;                // the kernel gives up
    std::size_t capacity = capacity_unbounded;  // bytes that the socket still takes

    // --- what the engine did
    bool wants_read = false;
    bool wants_write = false;
    bool dropped = false;
    bool refused = false;
    bool forced = false;       // by an operator
    bool blocked = false;      // the last send was cut short
    time_point blocked_at;     // the first of those without one in between that was not
    std::size_t messages = 1;  // received and due an answer: the ACQUIRE, and heartbeats
    std::vector<std::byte> sent;
    time_point last_received;

    receive_result receive(std::span<std::byte> into) noexcept override {
        require(!dropped);
        if (std::exchange(heartbeat_at_receive, false)) {
            inbox.push_back(protocol::heartbeat_frame[0]);
        }
        if (!inbox.empty()) {
            const std::size_t count = std::min(into.size(), inbox.size());
            std::copy_n(inbox.begin(), count, into.begin());
            inbox.erase(inbox.begin(), inbox.begin() + static_cast<std::ptrdiff_t>(count));
            const auto heartbeats = std::ranges::find_if(into.first(count), [](std::byte type) {
                return type != protocol::heartbeat_frame[0];
            });
            messages += static_cast<std::size_t>(heartbeats - into.begin());
            last_received = clock_->peek();
            return {receive_status::bytes, count};
        }
        if (silent) {
            return {receive_status::silence, 0};
        }
        return {closed ? receive_status::peer_closed : receive_status::nothing, 0};
    }

    send_result send(std::span<const std::byte> bytes) noexcept override {
        require(!dropped);
        if (silent) {
            return {send_status::silence, 0};
        }
        const std::size_t count = std::min(bytes.size(), capacity);
        capacity -= count;
        if (!std::exchange(blocked, count < bytes.size())) {
            blocked_at = clock_->peek();
        }
        sent.insert(sent.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
        return {send_status::sent, count};
    }

    void await_readable() override { wants_read = true; }
    void await_writable() override { wants_write = true; }
    void drop_connection() noexcept override { require(!std::exchange(dropped, true)); }
    void retire(closing /*how*/) noexcept override {
        require(state() == session_state::gone);
        judge_replies();
        self_->reset();
    }

    // One frame for each message, one push for a wait that ended in a grant, all in order.
    void judge_replies() const {
        protocol::server_frame_decoder decoder;
        std::span<const std::byte> rest = sent;
        std::size_t waits = 0;
        std::size_t grants = 0;
        std::size_t errors = 0;
        while (!rest.empty()) {
            std::size_t used = 0;
            const auto status = decoder.feed(rest, used);
            require(status != protocol::server_frame_decoder::status::malformed);
            rest = rest.subspan(used);
            if (status != protocol::server_frame_decoder::status::frame) {
                break;  // cut off by a full socket
            }
            const auto frame = decoder.take_frame();
            require(errors == 0);  // nothing follows an ERROR
            if (std::holds_alternative<protocol::waiting>(frame)) {
                require(grants == 0);  // never back
                ++waits;
            } else if (const auto* grant = std::get_if<protocol::acquired>(&frame)) {
                require(grant->token == token());
                ++grants;
            } else {
                ++errors;
            }
        }
        require(errors == 0 || refused);
        const std::size_t pushes = waits > 0 && grants > 0 ? 1 : 0;
        require(waits + grants <= messages + pushes);
        const bool all_out = !blocked && !dropped && !silent;
        if (all_out) {
            require(waits + grants == messages + pushes);
        }
    }

private:
    fuzz_clock* clock_;
    place* self_;
};

// The sessions that wait for each lock, first come first; and whom it may be granted to.
class expected_queues {
public:
    void follow(const fact& what) {
        if (const auto* const wait = std::get_if<queued>(&what)) {
            of(*wait->who).push_back(wait->who->id().value);
        } else if (const auto* const grant = std::get_if<granted>(&what)) {
            std::deque<std::uint64_t>& waiting = of(*grant->who);
            if (!waiting.empty()) {
                require(waiting.front() == grant->who->id().value);
                waiting.pop_front();
            }
        } else if (const auto* const end = std::get_if<ended>(&what)) {
            std::erase(of(*end->who), end->who->id().value);
        }
    }

private:
    std::deque<std::uint64_t>& of(const session& who) {
        return waiting_[std::string{who.lock_name()}];
    }

    std::map<std::string, std::deque<std::uint64_t>> waiting_;
};

class world final : public observer_port {
public:
    void step(choices& choose) {
        const std::uint8_t what = choose.next();
        peer* const who = peers_[what % peers_.size()].get();
        switch (what / peers_.size() % 12) {
            case 0:
                connect(peers_[what % peers_.size()], choose);
                break;
            case 1:
                clock_.pass(std::chrono::milliseconds{choose.next()});
                break;
            case 2:
                clock_.pause = std::chrono::microseconds{choose.next() * 40};
                break;
            case 3:
                judge();
                break;
            default:
                if (who != nullptr) {
                    act_on(*who, static_cast<unsigned>(what / peers_.size() % 12), choose);
                }
        }
        engine_.table().check_invariants();
    }

    // Everyone falls silent; in the end nobody is left, and nothing of any lock.
    void finish() {
        clock_.pause = nanoseconds{0};
        for (int round = 0; engine_.table().session_count() > 0; ++round) {
            require(round < 100);
            const auto next = engine_.next_deadline();
            require(next.has_value());
            clock_.pass(std::max(*next - clock_.peek(), nanoseconds{0}) + nanoseconds{1});
            judge();
            engine_.table().check_invariants();
        }
        require(engine_.table().lock_count() == 0);
        require(!engine_.next_deadline());
    }

    void on_fact(const fact& what) override {
        queues_.follow(what);
        const auto* const end = std::get_if<ended>(&what);
        if (end != nullptr) {
            judge_end(static_cast<const peer&>(*end->who), end->why);
        }
    }

    void on_error_due(const connected_session& who, protocol::error_code /*code*/,
                      std::string_view /*reason*/) override {
        const_cast<peer&>(static_cast<const peer&>(who)).refused = true;
    }

private:
    // Whether there was cause for it.
    void judge_end(const peer& who, end_reason why) const {
        const bool readable = !who.blocked && !who.dropped;
        switch (why) {
            case end_reason::expired:
                require(clock_.peek() - who.last_received > who.lease());  // never early
                require(!readable || who.silent || who.inbox.empty());
                return;
            case end_reason::io_timeout:
                require(who.blocked && clock_.peek() - who.blocked_at > io_timeout);
                return;
            case end_reason::force:
                require(who.forced);
                return;
            case end_reason::graceful:
                require(!who.forced && (who.closed || who.refused));
                return;
        }
    }

    void connect(peer::place& place, choices& choose) {
        if (place) {
            return;
        }
        place = std::make_unique<peer>(session_id{++last_id_}, clock_, place);
        const std::uint8_t how = choose.next();
        const protocol::acquire_request request{.lease_ms = 1U + how, .name = how % 2 ? "a" : "b"};
        std::vector<std::byte> rest(how / 2 % 4, protocol::heartbeat_frame[0]);
        place->messages += rest.size();
        place->last_received = clock_.peek();
        const time_point received_at = clock_.now();
        engine_.admit(*place, request, name_hash{how % 2U}, received_at, rest);
    }

    void act_on(peer& who, unsigned action, choices& choose) {
        switch (action) {
            case 4:
                who.inbox.insert(who.inbox.end(), 1 + choose.next() % 4,
                                 protocol::heartbeat_frame[0]);
                break;
            case 5:
                if (std::exchange(who.wants_read, false)) {
                    engine_.readable(who);
                }
                break;
            case 6:
                if (std::exchange(who.wants_write, false)) {
                    engine_.writable(who);
                }
                break;
            case 7:
                who.capacity = choose.next();
                break;
            case 8:
                who.closed = true;
                break;
            case 9:
                who.silent = true;
                break;
            case 10:
                who.heartbeat_at_receive = true;
                break;
            case 11:
                act_on_all(who, choose.next(), choose);
                break;
        }
    }

    // What the server's shell does to its sessions; or a byte from that one.
    void act_on_all(peer& who, std::uint8_t what, choices& choose) {
        const std::uint64_t tokens_given = tokens_.given();
        switch (what) {
            case 0:
                who.forced = true;
                engine_.close_with_error(who, end_reason::force,
                                         protocol::error_code::closed_by_administrator);
                break;
            case revoke_choice:
                revoke(choose.next());
                break;
            case tokens_choice:
                tokens_.refuses = !tokens_.refuses;
                break;
            case retry_choice:
                retry(choose.next() % 4U);
                break;
            case withhold_choice:
                withheld_ = true;
                engine_.withhold_grants();
                break;
            case close_all_choice:
                if (withheld_) {
                    close_all(choose.next() % 4U);
                }
                break;
            default:
                who.inbox.push_back(std::byte{what});
        }
        require(tokens_.given() == tokens_given || !(withheld_ || tokens_.refuses));
    }

    void retry(std::size_t budget) {
        const std::size_t idle = engine_.idle_count();
        engine_.retry_grants(budget);
        const bool may_grant = !withheld_ && !tokens_.refuses;
        require(may_grant ? engine_.idle_count() <= idle - std::min(idle, budget)
                          : engine_.idle_count() <= idle);
    }

    // A step of a shutdown, or of a server that steps down and may be called again.
    void close_all(std::size_t budget) {
        const std::size_t before = engine_.table().session_count();
        const bool more = engine_.close_all(budget, protocol::error_code::server_shutting_down);
        require(before - engine_.table().session_count() >= std::min(before, budget));
        require(more == (engine_.table().session_count() > 0));
        if (!more) {
            require(engine_.table().lock_count() == 0 && engine_.idle_count() == 0);
            engine_.grant_again();
            withheld_ = false;
        }
    }

    // `allowed` has a bit for each who may stay. All others that wait are gone afterwards, and
    // whoever owned or may stay is as before. Nobody was granted anything, but for who has become
    // the head of an idle lock.
    void revoke(std::uint8_t allowed) {
        const auto may_stay = [allowed](const session& who) {
            return (unsigned{allowed} >> who.id().value % 8 & 1U) != 0;
        };
        std::array<session_state, std::tuple_size_v<decltype(peers_)>> expected{};
        std::size_t leave = 0;
        for (std::size_t place = 0; place < peers_.size(); ++place) {
            if (peers_[place]) {
                const session& who = *peers_[place];
                const bool leaves = who.state() == session_state::waiting && !may_stay(who);
                leave += leaves ? 1 : 0;
                expected[place] = leaves ? session_state::fresh : who.state();
            }
        }
        const bool idle = engine_.idle_count() > 0;
        const std::uint64_t tokens_given = tokens_.given();
        require(engine_.revoke_waiters([&](const connected_session& who) {
            require(who.state() == session_state::waiting);
            return may_stay(who);
        }) == leave);
        require(idle || tokens_.given() == tokens_given);
        for (std::size_t place = 0; place < peers_.size(); ++place) {
            const auto now = peers_[place] ? peers_[place]->state() : session_state::fresh;
            const bool inherits =
                idle && now == session_state::owning && expected[place] == session_state::waiting;
            require(inherits || now == expected[place]);
        }
    }

    void judge() {
        for (int turn = 0; engine_.judge(3); ++turn) {
            require(turn < 1000);  // each turn reads what is there or ends somebody
        }
        for (const peer::place& one : peers_) {
            require(!one || clock_.peek() - one->last_seen() <= one->lease());  // none forgotten
        }
    }

    fuzz_clock clock_;
    counting_tokens tokens_;
    session_engine engine_{tokens_, clock_, *this, {.io_timeout = io_timeout}};
    std::array<peer::place, 5> peers_;
    expected_queues queues_;
    std::uint64_t last_id_ = 0;
    bool withheld_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices choose{data, size};
    world all;
    while (choose.any()) {
        all.step(choose);
    }
    all.finish();
    return 0;
}
