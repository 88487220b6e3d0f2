#include "client/pursuit.hpp"

#include <algorithm>
#include <utility>

#include "client/thread.hpp"

namespace monolock::detail {

driven_core::driven_core(client_options options)
    : to{std::make_shared<const target>(std::move(options))} {
    try {
        loop = std::make_shared<reactor>();
    } catch (const std::system_error& refused) {
        throw error{refused.code(), stage::preparing, "epoll"};
    }
    ways = std::make_shared<routes>(loop, *to);
    if (const auto& secured = to->places.front().secured) {  // the files are the same for all
        contexts.emplace(secured->files);
    }
}

pursuit::pursuit(std::shared_ptr<driven_core> on, std::variant<claim_request, errc> asked,
                 bool retries, callback on_result)
    : on_{std::move(on)},
      asked_{std::move(asked)},
      retries_{retries},
      on_result_{std::move(on_result)},
      delays_{*on_->to} {}

void pursuit::start(reactor::guard& held) {
    if (const auto* const wrong = std::get_if<errc>(&asked_)) {
        fail(refusal(*wrong), held);
    } else {
        try_once(held);
    }
}

void pursuit::try_once(reactor::guard& held) {
    ++tries_;
    if (!on_->contexts) {
        static_cast<void>(begin({}, held));
        return;
    }
    phase_ = phase::loading;
    const bool started =
        start_detached_thread([self = shared_from_this(), at = tries_] { self->load(at); });
    if (!started) {
        fail(refusal(errc::thread_unavailable), held);
    }
}

// The thread of an attempt over TLS.
void pursuit::load(std::uint64_t at) {
    auto loaded = load_files(*on_->contexts, given_up_.get_token());
    auto held = on_->loop->lock();
    if (phase_ != phase::loading || tries_ != at) {
        return;
    }
    if (auto* const wrong = std::get_if<failure>(&loaded)) {
        fail(std::move(*wrong), held);
        return;
    }
    begin(std::get<tls::context>(std::move(loaded)), held)->escort(held);
}

std::shared_ptr<attempt> pursuit::begin(tls::context secured_by, reactor::guard& held) {
    phase_ = phase::trying;
    auto made = std::make_shared<attempt>(on_->loop, on_->to, on_->ways,
                                          std::get<claim_request>(asked_), std::move(secured_by));
    attempt_ = made;
    made->on_outcome([weak = weak_from_this(), which = made.get()](reactor::guard& locked) {
        if (const auto self = weak.lock()) {
            self->hear(*which, locked);
        }
    });
    made->start();
    made->settle(held);
    return made;
}

void pursuit::hear(const attempt& from, reactor::guard& held) {
    if (phase_ != phase::trying || attempt_.get() != &from) {
        return;
    }
    if (!from.failed() || !pause_after(*from.failed())) {
        phase_ = phase::settled;
        tell(held);
    }
}

// Whether it goes on after that.
bool pursuit::pause_after(const failure& why) {
    if (!retries_ || !is_worth_another_try(why)) {
        return false;
    }
    phase_ = phase::pausing;
    const claim_time now = clock_reading();
    const auto next = now + delays_.next(why);
    const auto& give_up = std::get<claim_request>(asked_).give_up;
    on_->loop->add(shared_from_this());
    on_->loop->schedule(*this, give_up ? std::min(next, *give_up) : next);
    return true;
}

void pursuit::on_time() {
    on_->loop->remove(*this);
    phase_ = phase::due;
}

void pursuit::settle(reactor::guard& held) {
    if (phase_ != phase::due) {
        return;
    }
    const auto& give_up = std::get<claim_request>(asked_).give_up;
    if (give_up && clock_reading() >= *give_up) {
        fail(refusal(errc::wait_expired, stage::connecting), held);
    } else {
        try_once(held);
    }
}

void pursuit::fail(failure why, reactor::guard& held) {
    failed_ = std::move(why);
    phase_ = phase::settled;
    tell(held);
}

void pursuit::tell(reactor::guard& held) {
    if (silent_ || !on_result_) {
        return;
    }
    ++telling_;
    held.unlock();
    on_result_();
    held.lock();
    --telling_;
    told_.notify_all();
}

void pursuit::cancel(reactor::guard& held) {
    const phase was = phase_;
    if (was == phase::idle || was == phase::over) {
        return;
    }
    if (was == phase::pausing) {
        on_->loop->remove(*this);
    }
    given_up_.request_stop();
    failed_ = refusal(errc::stopped);
    phase_ = phase::settled;  // so that what the attempt comes to is not heard
    if (attempt_ && (was == phase::trying || was == phase::settled)) {
        failed_->at = attempt_->reached();
        attempt_->cancel(errc::stopped);
        attempt_->settle(held);
    }
    if (was != phase::settled) {
        tell(held);
    }
}

void pursuit::fall_silent(reactor::guard& held) {
    silent_ = true;
    told_.wait(held, [this] { return telling_ == 0; });
}

std::shared_ptr<attempt> pursuit::candidate() const noexcept {
    return phase_ == phase::settled && !failed_ ? attempt_ : nullptr;
}

std::optional<pursuit::outcome> pursuit::take(reactor::guard& held) {
    if (phase_ != phase::settled) {
        return std::nullopt;
    }
    if (!failed_) {
        const auto tried = attempt_;
        auto wrong = tried->take_outcome(held);
        if (!wrong) {
            phase_ = phase::over;
            return tried;
        }
        if (pause_after(*wrong)) {
            return std::nullopt;
        }
        failed_ = std::move(wrong);
    }
    phase_ = phase::over;
    return *failed_;
}

}  // namespace monolock::detail
