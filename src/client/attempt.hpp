#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/address_order.hpp"
#include "client/claim.hpp"
#include "client/connector.hpp"
#include "client/failure.hpp"
#include "client/miss.hpp"
#include "client/reactor.hpp"
#include "client/routes.hpp"
#include "client/target.hpp"
#include "client/wire.hpp"
#include "tls/context.hpp"

namespace monolock::detail {

// What one call asks for. The name and the lease are valid.
struct claim_request {
    std::string name;
    std::chrono::milliseconds lease{};
    bool queue = true;                  // false: give up when told WAITING
    std::optional<claim_time> give_up;  // absent: wait for ever
    address_round::manner pace = address_round::manner::thorough;
};

// One attempt on one lock, from resolving the name to the end of the claim: the shell around
// `claim`. It does what the claim says and decides nothing about ownership itself.
//
//     resolving | dialing ─► connecting ─► [securing ─►] talking ─► over
//
// That is the way to one address. With several the attempt takes one after the other
// (address_round) until a server answers the claim, each over a connection of its own, and there is
// never more than one: an address that fails in a way that lets the claim go elsewhere
// (may_move_on) is a miss, and the attempt goes on to the next; all else ends it. Nothing moves a
// claim that was answered.
//
// Until the outcome is taken (take_outcome) a failure is the outcome; afterwards it is a loss.
// Everything is guarded by the reactor's mutex but what is marked atomic. The application is called
// only from settle(), with the mutex released. The TLS handshake, which computes for milliseconds
// where all else takes microseconds, is done by the thread that waits in take_outcome() or
// escort(), with the mutex released too: neither the heartbeats of other claims nor other
// handshakes wait for it.
class attempt final : public reactor::member, public std::enable_shared_from_this<attempt> {
public:
    using loss_callback = std::function<void(std::error_code)>;
    using outcome_callback = std::function<void(reactor::guard&)>;

    attempt(std::shared_ptr<reactor> loop, std::shared_ptr<const target> to,
            std::shared_ptr<routes> ways, claim_request request, tls::context secured_by);

    // --- acquiring; with the mutex held ---

    void start();
    // Before start(): called once there is an outcome, with the mutex held; it may unlock it.
    void on_outcome(outcome_callback callback) { on_outcome_ = std::move(callback); }
    // Ends an attempt that has no outcome yet; later it does nothing.
    void cancel(errc why);
    // Why it came to nothing, once it has.
    [[nodiscard]] const std::optional<failure>& failed() const noexcept { return outcome_; }
    // How far the claim has come, at any address.
    [[nodiscard]] stage reached() const noexcept { return stage_; }
    // For one that nobody waits for in take_outcome(): blocks until the claim is answered or all is
    // over, and does the TLS handshakes meanwhile.
    void escort(reactor::guard& held);
    // Blocks until there is an outcome, doing the TLS handshake meanwhile, and judges a grant once
    // more with a fresh reading: nothing if the lock is granted, and from then on the claim is the
    // caller's. Before it, settle() must have been called after start() and cancel().
    [[nodiscard]] std::optional<failure> take_outcome(reactor::guard& held);

    // --- holding; with the mutex held ---

    // Reads what has come and judges the claim, now.
    void look();
    [[nodiscard]] const std::optional<failure>& loss() const noexcept { return loss_; }
    // Judges once more and ends the claim: the loss, or nothing if it was held to the last. Waits
    // for an on_loss callback that another thread is running or is about to run.
    [[nodiscard]] std::optional<failure> release(reactor::guard& held);
    // Gives the old callback back, so that what it captured ends outside the mutex. Settle
    // afterwards.
    void swap_on_loss(loss_callback& callback);

    // --- any thread, no mutex ---

    // Tells the application that the lock is held, on the calling thread.
    void announce_held() const noexcept;

    [[nodiscard]] claim_time confirmed_until() const noexcept {
        return claim_time{claim_clock::duration{confirmed_until_.load(std::memory_order_acquire)}};
    }
    [[nodiscard]] bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t token() const noexcept { return token_; }
    [[nodiscard]] int native_handle() const noexcept { return wire_.descriptor(); }
    [[nodiscard]] std::stop_source& stop() noexcept { return stop_; }
    [[nodiscard]] const std::shared_ptr<reactor>& loop() const noexcept { return loop_; }
    // In a forked child, where nothing here may be locked: closes the child's copy.
    void abandon_in_child() noexcept { wire_.abandon(); }

    // --- reactor::member ---

    void on_ready() override;
    void on_time() override;
    void settle(reactor::guard& held) override;

private:
    enum class phase { idle, resolving, dialing, connecting, securing, talking, over };
    // Of the handshake's next step: whoever waits in take_outcome() or escort() takes it once due.
    enum class step { none, due, under_way };

    // What the application is still to be told.
    struct notices {
        std::vector<stage> stages;
        std::vector<std::stop_source> dialers;  // that are not wanted any more
        bool loss = false;
        [[nodiscard]] bool any() const noexcept {
            return !stages.empty() || !dialers.empty() || loss;
        }
    };

    // approach.cpp: the way to a server
    [[nodiscard]] std::chrono::nanoseconds time_for_addresses(claim_time now) const noexcept;
    [[nodiscard]] std::chrono::nanoseconds time_for_handshake() const noexcept;
    [[nodiscard]] const place& here() const noexcept { return to_->places[step_to_.address]; }
    // For a failure that has no more to tell: with a list sum_up() names all of them.
    [[nodiscard]] std::string lone_address() const { return to_->is_list() ? "" : here().text; }
    void enter(stage next);
    void try_next();
    void start_resolving();
    void start_dialer();
    void dialed(posix::descriptor socket, failure why, reactor::guard& held);
    void connect_to(std::vector<endpoint> endpoints);
    void advance(connector::status status);
    void connected(posix::descriptor socket);
    void take_step(reactor::guard& held);
    void secured(wire::status status);
    void talk();
    void miss_here(std::error_code code, std::string detail);
    void miss_here(failure why);
    void end_here(failure why);
    void leave_here();
    void remember_answer() noexcept;
    void remember_loss(const failure& why) noexcept;

    // attempt.cpp: talking, and the end
    void turn();
    void listen(claim_time now);
    void receive_all(claim_time now);
    void send_what_is_due();
    void take_stock();
    void plan();

    void fail(std::error_code code, std::string detail);
    void end_with(failure why);
    void explain_close(failure& result) const;
    void lose();
    void drop_dialer();
    void leave_reactor() noexcept;
    void close_wire() noexcept;
    void tell(const notices& what, reactor::guard& held);
    void tell_outcome(reactor::guard& held);
    void call_on_loss(reactor::guard& held);
    [[nodiscard]] std::optional<std::thread::id> tells_of_loss() const noexcept;

    const std::shared_ptr<reactor> loop_;
    const std::shared_ptr<const target> to_;
    const std::shared_ptr<routes> ways_;
    const claim_request request_;
    const tls::context secured_by_;  // null: plain

    phase phase_ = phase::idle;
    stage stage_ = stage::preparing;  // the furthest that any address came to
    claim_time phase_end_;            // of resolving, dialing and securing
    std::optional<address_round> round_;
    address_round::step step_to_;  // the address that is being tried
    std::uint64_t tries_ = 0;      // tells its answers from those to an earlier one
    stage here_stage_ = stage::preparing;
    std::vector<miss> misses_;
    bool answer_remembered_ = false;
    std::optional<connector> connector_;
    std::stop_source dial_stop_;
    step step_ = step::none;
    claim claim_;
    wire wire_;
    std::optional<wire::ending> broken_by_;  // why the connection is closed

    bool granted_ = false;
    bool taken_ = false;  // by take_outcome
    std::optional<failure> outcome_;
    outcome_callback on_outcome_;
    std::optional<failure> loss_;

    notices notices_;
    std::optional<std::thread::id> settling_in_;
    std::condition_variable changed_;
    loss_callback on_loss_;
    std::optional<std::thread::id> on_loss_runs_in_;

    std::stop_source stop_;
    std::uint64_t token_ = 0;  // set before the outcome is taken
    std::atomic<std::int64_t> confirmed_until_{0};
    std::atomic<bool> lost_{false};
};

}  // namespace monolock::detail
