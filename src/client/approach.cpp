// The way of an attempt to a server: resolving, dialing, connecting, the TLS handshake, and from
// one address to the next.

#include "client/attempt.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "client/dial.hpp"
#include "client/thread.hpp"
#include "protocol/heartbeat_schedule.hpp"

namespace monolock::detail {

void attempt::start() {
    loop_->add(shared_from_this());
    enter(stage::connecting);
    const claim_time now = clock_reading();
    round_.emplace(ways_->order.in_order(), time_for_addresses(now), request_.pace, now);
    try_next();
    plan();
}

// With several addresses the first must not use up the time that the caller gave.
std::chrono::nanoseconds attempt::time_for_addresses(claim_time now) const noexcept {
    const std::chrono::nanoseconds whole = to_->options.connect_timeout;
    if (!to_->is_list() || !request_.give_up) {
        return whole;
    }
    return std::clamp(*request_.give_up - now, std::chrono::nanoseconds{0}, whole);
}

// Where there are other servers, one that takes connections and does nothing with them is left as
// soon as it would be if it did not answer the ACQUIRE.
std::chrono::nanoseconds attempt::time_for_handshake() const noexcept {
    const std::chrono::nanoseconds whole = to_->options.connect_timeout;
    const auto patience = std::max(protocol::client_timeout(request_.lease), step_to_.share);
    return to_->is_list() ? std::min(whole, patience) : whole;
}

// From here on nothing of the last address is left: not its connection, and not its claim.
void attempt::try_next() {
    const claim_time now = clock_reading();
    const auto next = round_->next(now);
    if (!next) {
        end_with(sum_up(std::exchange(misses_, {})));
        return;
    }
    step_to_ = *next;
    ++tries_;
    here_stage_ = stage::connecting;
    phase_end_ = now + step_to_.share;
    if (to_->options.dialer) {
        start_dialer();
    } else if (here().endpoints) {
        connect_to(*here().endpoints);
    } else {
        start_resolving();
    }
}

void attempt::enter(stage next) {
    here_stage_ = next;
    if (next > stage_) {
        stage_ = next;
        notices_.stages.push_back(next);
    }
}

void attempt::start_resolving() {
    phase_ = phase::resolving;
    const bool asked = ways_->names[step_to_.address]->ask(
        [weak = weak_from_this(), at = tries_](const resolution& found, reactor::guard& held) {
            const auto self = weak.lock();
            if (!self || self->phase_ != phase::resolving || self->tries_ != at) {
                return;
            }
            if (found.failed) {
                const bool says_nothing_new =
                    self->to_->is_list() && found.failed == make_error_code(errc::host_not_found);
                self->miss_here(found.failed, says_nothing_new ? std::string{} : found.detail);
            } else {
                self->connect_to(found.endpoints);
            }
            self->plan();
            self->settle(held);
        });
    if (!asked) {
        fail(make_error_code(errc::thread_unavailable), "for the resolver");
    }
}

void attempt::start_dialer() {
    phase_ = phase::dialing;
    dial_stop_ = std::stop_source{};
    const bool started = start_detached_thread([weak = weak_from_this(), to = to_, where = &here(),
                                                at = tries_, stop = dial_stop_.get_token()] {
        auto [connected, why] = dial(*to, *where, stop);
        const auto self = weak.lock();
        if (self) {  // else `connected` closes
            auto held = self->loop_->lock();
            if (self->phase_ == phase::dialing && self->tries_ == at) {
                self->dialed(std::move(connected), std::move(why), held);
            }
        }
    });
    if (!started) {
        fail(make_error_code(errc::thread_unavailable), "for the dialer");
    }
}

void attempt::dialed(posix::descriptor socket, failure why, reactor::guard& held) {
    if (socket) {
        connected(std::move(socket));
    } else {
        miss_here(why.code, std::move(why.detail));
    }
    plan();
    settle(held);
}

void attempt::connect_to(std::vector<endpoint> endpoints) {
    phase_ = phase::connecting;
    const auto count = static_cast<std::ptrdiff_t>(endpoints.size());
    const auto limit =
        step_to_.silence < step_to_.share / count ? step_to_.silence * count : step_to_.share;
    connector_.emplace(std::move(endpoints), to_->local, limit);
    advance(connector_->start(clock_reading()));
}

void attempt::advance(connector::status status) {
    switch (status) {
        case connector::status::failed:
            if (connector_->error() == make_error_code(errc::connect_timeout)) {
                round_->was_silent();
            }
            miss_here(connector_->error(), lone_address());
            break;
        case connector::status::connected:
            connected(connector_->take_socket());
            break;
        case connector::status::pending:
            if (connector_->fd() >= 0) {
                if (const auto refused = loop_->watch(*this, connector_->fd(), EPOLLOUT)) {
                    fail(refused, "epoll");
                }
            }
            break;
    }
}

void attempt::connected(posix::descriptor socket) {
    connector_.reset();
    wire_.open(std::move(socket));
    if (!secured_by_) {
        talk();
        return;
    }
    phase_ = phase::securing;
    phase_end_ = clock_reading() + time_for_handshake();
    step_ = step::due;
}

// On the thread of the call. What happens meanwhile may end the attempt, but leaves the wire alone.
void attempt::take_step(reactor::guard& held) {
    if (!wire_.is_secured()) {
        wire_.secure(secured_by_, *here().secured);
    }
    step_ = step::under_way;
    held.unlock();
    const wire::status status = wire_.handshake();
    held.lock();
    step_ = step::none;
    if (phase_ == phase::over) {
        close_wire();
        return;
    }
    secured(status);
    plan();
    settle(held);
}

void attempt::secured(wire::status status) {
    switch (status) {
        case wire::status::ok:
            talk();
            break;
        case wire::status::blocked:
            break;
        case wire::status::closed:
            miss_here(wire_.end().code, wire_.end().detail);
            break;
    }
}

void attempt::talk() {
    phase_ = phase::talking;
    enter(stage::requesting);
    turn();
}

void attempt::miss_here(std::error_code code, std::string detail) {
    miss_here(
        failure{.code = code, .at = here_stage_, .detail = std::move(detail), .admitted = false});
}

void attempt::miss_here(failure why) {
    if (phase_ == phase::over) {
        return;
    }
    if (!may_move_on(why)) {
        end_here(std::move(why));
        return;
    }
    ways_->order.failed(step_to_.address);
    const auto known = std::ranges::find(misses_, here().text, &miss::address);
    if (known == misses_.end()) {
        misses_.push_back({.address = here().text, .why = std::move(why)});
    } else {
        known->why = std::move(why);  // the second pass
    }
    leave_here();
    try_next();
}

void attempt::end_here(failure why) {
    remember_loss(why);
    if (to_->is_list()) {
        name_address(why, here().text);
    }
    end_with(std::move(why));
}

void attempt::leave_here() {
    drop_dialer();
    loop_->unwatch(*this);  // before the socket closes
    connector_.reset();
    wire_.close();
    step_ = step::none;
    claim_ = claim{request_.name, request_.lease};
    phase_ = phase::idle;
}

void attempt::remember_answer() noexcept {
    if (!std::exchange(answer_remembered_, true)) {
        ways_->order.worked(step_to_.address);
    }
}

// A refusal is an answer. What an administrator says to one claim is nothing about the server.
void attempt::remember_loss(const failure& why) noexcept {
    const bool refused =
        wire_code(why.code) || why.code == make_error_code(errc::certificate_refused);
    if (!refused || why.code == make_error_code(errc::server_shutting_down)) {
        ways_->order.failed(step_to_.address);
    } else if (!why.admitted) {
        remember_answer();
    }
}

}  // namespace monolock::detail
