#include "client/attempt.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace monolock::detail {

namespace {

constexpr std::size_t receive_bytes = 512;

// How often a receive may come back without a byte although TLS holds some: a server that sends
// nothing but key updates must not keep a claim from being judged.
constexpr int silent_rounds_max = 8;

// Calls the application. What it throws is dropped: there is nobody here to hand it to.
template <class Callback, class... Arguments>
void call_out(const Callback& callback, const Arguments&... arguments) noexcept {
    try {
        callback(arguments...);
    } catch (...) {
    }
}

}  // namespace

attempt::attempt(std::shared_ptr<reactor> loop, std::shared_ptr<const target> to,
                 std::shared_ptr<routes> ways, claim_request request, tls::context secured_by)
    : loop_{std::move(loop)},
      to_{std::move(to)},
      ways_{std::move(ways)},
      request_{std::move(request)},
      secured_by_{std::move(secured_by)},
      dial_stop_{std::nostopstate},
      claim_{request_.name, request_.lease} {}

// ---- acquiring ----

void attempt::cancel(errc why) {
    if (taken_ || outcome_) {
        return;
    }
    if (why == errc::wait_expired && !claim_.admitted()) {
        ways_->order.failed(step_to_.address);  // all its time went by without an answer
    }
    fail(make_error_code(why), {});
}

std::optional<failure> attempt::take_outcome(reactor::guard& held) {
    const auto is_settled = [this] {
        return (granted_ || outcome_) && !settling_in_ && !notices_.any();
    };
    while (!is_settled()) {
        changed_.wait(held, [&] { return step_ == step::due || is_settled(); });
        if (step_ == step::due) {
            take_step(held);
        }
    }
    if (!outcome_) {
        look();  // the grant may have aged on its way to this thread
        settle(held);
    }
    taken_ = true;
    return outcome_;
}

void attempt::escort(reactor::guard& held) {
    const auto is_done = [this] { return claim_.admitted() || phase_ == phase::over; };
    while (!is_done()) {
        changed_.wait(held, [&] { return step_ == step::due || is_done(); });
        if (step_ == step::due) {
            take_step(held);
        }
    }
}

// ---- talking ----

void attempt::turn() {
    listen(clock_reading());
    if (phase_ == phase::talking) {
        send_what_is_due();
        take_stock();
    }
}

// Reads all that is in the socket, then judges with the reading taken before: in this order, so
// that an answer which is already there counts (docs/protocol.md).
void attempt::listen(claim_time now) {
    receive_all(now);
    claim_.judge(now);
    take_stock();
}

void attempt::receive_all(claim_time now) {
    std::array<std::byte, receive_bytes> buffer{};
    // Bounded by the protocol: bytes that answer nothing end the claim.
    int silent_rounds = 0;
    while (claim_.state() != claim_state::lost) {
        const auto got = wire_.receive(buffer);
        switch (got.outcome) {
            case wire::status::ok:
                claim_.receive(std::span{buffer}.first(got.count), now);
                break;
            case wire::status::blocked:
                if (!wire_.holds_input() || ++silent_rounds > silent_rounds_max) {
                    return;  // plan() sees to what is left
                }
                break;
            case wire::status::closed:
                claim_.close();
                break;
        }
    }
}

void attempt::send_what_is_due() {
    while (claim_.state() != claim_state::lost) {
        // Read before the first byte goes to the kernel, or to TLS: the send time that ownership
        // counts from.
        const auto bytes = claim_.output(clock_reading());
        if (bytes.empty()) {
            return;
        }
        const auto sent = wire_.send(bytes);
        switch (sent.outcome) {
            case wire::status::ok:
                claim_.transmitted(sent.count);
                break;
            case wire::status::blocked:
                return;
            case wire::status::closed:
                receive_all(clock_reading());  // an ERROR or an alert may wait there
                claim_.close();
                break;
        }
    }
}

// Turns what the claim has come to into outcomes.
void attempt::take_stock() {
    if (const auto until = claim_.confirmed_until()) {
        confirmed_until_.store(until->time_since_epoch().count(), std::memory_order_release);
    }
    if (claim_.admitted()) {
        remember_answer();
    }
    if (claim_.was_queued()) {
        enter(stage::queued);
    }
    switch (claim_.state()) {
        case claim_state::requesting:
            break;
        case claim_state::waiting:
            if (!request_.queue) {
                fail(make_error_code(errc::busy), {});
            }
            break;
        case claim_state::held:
            if (!granted_) {
                granted_ = true;
                token_ = claim_.token()->value;
            }
            break;
        case claim_state::lost:
            lose();
            break;
    }
}

// Asks the reactor for the next turn.
void attempt::plan() {
    std::optional<claim_time> when;
    switch (phase_) {
        case phase::idle:
        case phase::over:
            return;
        case phase::resolving:
        case phase::dialing:
            when = phase_end_;
            break;
        case phase::connecting:
            when = connector_->wakeup();
            break;
        case phase::securing:
            when = phase_end_;
            break;
        case phase::talking:
            when = wire_.holds_input() ? clock_reading() : claim_.next_wakeup();
            break;
    }
    if (step_ != step::none) {
        loop_->unwatch(*this);  // readiness would be told again and again until the step is done
    } else if (wire_.descriptor() >= 0) {
        if (const auto refused = loop_->watch(*this, wire_.descriptor(), wire_.interest())) {
            fail(refused, "epoll");
            return;
        }
    }
    if (!granted_ && request_.give_up) {
        when = when ? std::min(*when, *request_.give_up) : request_.give_up;
    }
    loop_->schedule(*this, when);
}

void attempt::on_ready() {
    if (phase_ == phase::connecting) {
        loop_->unwatch(*this);  // before the connector may close the socket
        advance(connector_->proceed(clock_reading()));
    } else if (phase_ == phase::securing && step_ == step::none) {
        step_ = step::due;
    } else if (phase_ == phase::talking) {
        turn();
    }
    plan();
}

void attempt::on_time() {
    const claim_time now = clock_reading();
    if (!granted_ && request_.give_up && now >= *request_.give_up) {
        cancel(errc::wait_expired);
        return;
    }
    if (step_ == step::under_way) {
        return;  // the wire is in use: take_step() plans again
    }
    const bool is_bounded =
        phase_ == phase::resolving || phase_ == phase::dialing || phase_ == phase::securing;
    if (is_bounded && now >= phase_end_) {
        miss_here(make_error_code(errc::connect_timeout),
                  phase_ == phase::securing ? "in the TLS handshake" : lone_address());
        plan();
        return;
    }
    on_ready();
}

// ---- ending ----

// Ends an attempt that has come to nothing; the claim, if there is one yet, goes with it. Once the
// outcome was taken it is a loss like any other.
void attempt::fail(std::error_code code, std::string detail) {
    if (phase_ == phase::over) {
        return;
    }
    if (taken_) {  // the claim is the caller's: what ends it is a loss, and must be told
        broken_by_ = {.code = make_error_code(errc::connection_closed),
                      .detail = std::move(detail)};
        claim_.close();
        lose();
        return;
    }
    end_with(failure{
        .code = code, .at = stage_, .detail = std::move(detail), .admitted = claim_.admitted()});
}

void attempt::end_with(failure why) {
    outcome_ = std::move(why);
    drop_dialer();
    leave_reactor();
    close_wire();
}

// What the wire knows about its end. The verdict of TLS is the outcome as long as nothing was
// answered: a server with TLS 1.3 refuses a certificate when the ACQUIRE is already on its way.
// Afterwards the connection broke, whatever broke it.
void attempt::explain_close(failure& result) const {
    const wire::ending& end = broken_by_ ? *broken_by_ : wire_.end();
    result.detail = end.detail;
    if (claim_.admitted()) {
        return;
    }
    if (end.code) {
        result.code = end.code;
    }
    if (!secured_by_) {
        result.detail += result.detail.empty() ? "" : ", ";
        result.detail += "before any answer (does the server want TLS?)";
    }
}

void attempt::lose() {
    if (phase_ == phase::over) {
        return;
    }
    const claim_loss& why = claim_.loss();
    failure result = to_failure(why, taken_ ? stage::held : here_stage_, claim_.admitted());
    if (why.kind == loss_kind::connection_closed) {
        explain_close(result);
    }
    if (may_move_on(result)) {
        miss_here(std::move(result));
        return;
    }
    if (!taken_) {
        end_here(std::move(result));
        return;
    }
    remember_loss(result);
    if (to_->is_list()) {
        name_address(result, here().text);
    }
    leave_reactor();
    // The socket stays open until the work has been told: settle() closes it then.
    loss_ = std::move(result);
    notices_.loss = true;
    lost_.store(true, std::memory_order_release);
}

void attempt::drop_dialer() {
    if (phase_ == phase::dialing) {
        notices_.dialers.push_back(std::exchange(dial_stop_, std::stop_source{std::nostopstate}));
    }
}

void attempt::leave_reactor() noexcept {
    phase_ = phase::over;
    if (step_ == step::due) {
        step_ = step::none;  // one that is under way ends by itself
    }
    loop_->remove(*this);  // before its socket closes
    connector_.reset();
}

void attempt::close_wire() noexcept {
    if (step_ != step::under_way) {  // else take_step() does it
        wire_.close();
    }
}

// ---- holding ----

void attempt::look() {
    if (phase_ == phase::talking) {
        listen(clock_reading());
        plan();
    }
}

std::optional<failure> attempt::release(reactor::guard& held) {
    look();
    if (phase_ != phase::over) {
        drop_dialer();
        leave_reactor();
    }
    settle(held);
    changed_.wait(held, [this] {
        const auto telling = tells_of_loss();
        return !telling || *telling == std::this_thread::get_id();  // a callback that releases
    });
    close_wire();
    return loss_;
}

void attempt::swap_on_loss(loss_callback& callback) {
    on_loss_.swap(callback);
    notices_.loss = notices_.loss || (loss_ && on_loss_);
}

// ---- telling the application ----

void attempt::settle(reactor::guard& held) {
    if (settling_in_) {
        return;  // whoever is at it goes on until there is nothing to tell
    }
    settling_in_ = std::this_thread::get_id();
    while (notices_.any()) {
        tell(std::exchange(notices_, {}), held);
    }
    settling_in_.reset();
    if (phase_ == phase::over && loss_) {
        close_wire();
    }
    changed_.notify_all();
    if (on_outcome_ && (granted_ || outcome_)) {
        tell_outcome(held);
    }
}

void attempt::tell_outcome(reactor::guard& held) {
    const auto self = shared_from_this();  // whoever is told may let go of it
    std::exchange(on_outcome_, nullptr)(held);
}

void attempt::tell(const notices& what, reactor::guard& held) {
    held.unlock();
    if (to_->options.on_stage) {
        for (const stage entered : what.stages) {
            call_out(to_->options.on_stage, std::string_view{request_.name}, entered);
        }
    }
    for (const std::stop_source& dialer : what.dialers) {
        dialer.request_stop();
    }
    if (what.loss) {
        stop_.request_stop();
    }
    held.lock();
    if (what.loss) {
        call_on_loss(held);
    }
}

void attempt::announce_held() const noexcept {
    if (to_->options.on_stage) {
        call_out(to_->options.on_stage, std::string_view{request_.name}, stage::held);
    }
}

// The thread that runs on_loss, or that has told the stop token and comes to on_loss next.
std::optional<std::thread::id> attempt::tells_of_loss() const noexcept {
    if (on_loss_runs_in_) {
        return on_loss_runs_in_;
    }
    return loss_ && on_loss_ ? settling_in_ : std::nullopt;
}

void attempt::call_on_loss(reactor::guard& held) {
    auto callback = std::exchange(on_loss_, nullptr);
    if (!callback) {
        return;
    }
    const std::error_code why = loss_->code;
    on_loss_runs_in_ = std::this_thread::get_id();
    held.unlock();
    call_out(callback, why);
    callback = nullptr;  // what it captured ends outside the mutex too
    held.lock();
    on_loss_runs_in_.reset();
    changed_.notify_all();
}

}  // namespace monolock::detail
