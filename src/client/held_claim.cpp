#include "client/held_claim.hpp"

#include <unistd.h>

#include <utility>

#include "client/call.hpp"

namespace monolock::detail {

held_claim::held_claim(std::shared_ptr<const void> runs_on, std::shared_ptr<attempt> claim)
    : runs_on_{std::move(runs_on)}, claim_{std::move(claim)}, process_{::getpid()} {}

held_claim::~held_claim() {
    if (!released_) {
        static_cast<void>(release());
    }
}

bool held_claim::elsewhere() const noexcept {
    return process_ != ::getpid();
}

boot_clock::time_point held_claim::confirmed_until() const noexcept {
    return boot_clock::time_point{claim_->confirmed_until().time_since_epoch()};
}

void held_claim::judge() {
    if (!claim_->is_lost() && clock_reading() >= claim_->confirmed_until()) {
        auto held = claim_->loop()->lock();
        claim_->look();
        claim_->settle(held);
    }
}

bool held_claim::lost() {
    if (elsewhere()) {
        return true;
    }
    judge();
    return claim_->is_lost();
}

std::optional<failure> held_claim::loss() {
    if (elsewhere()) {
        return in_other_process(stage::held);
    }
    judge();
    if (!claim_->is_lost()) {
        return std::nullopt;
    }
    const auto held = claim_->loop()->lock();
    return claim_->loss();
}

void held_claim::on_loss(attempt::loss_callback callback) {
    if (elsewhere()) {
        return;  // no thread of the library lives here that could call it
    }
    auto held = claim_->loop()->lock();
    claim_->swap_on_loss(callback);
    claim_->settle(held);
    held.unlock();  // before the old callback ends
}

std::optional<failure> held_claim::release() {
    released_ = true;
    if (elsewhere()) {
        claim_->abandon_in_child();
        return in_other_process(stage::held);
    }
    attempt::loss_callback dropped;
    auto held = claim_->loop()->lock();
    auto loss = claim_->release(held);
    if (!loss) {
        claim_->swap_on_loss(dropped);
    }  // else it has been called, or will be by this very thread: we are in a callback of the loss
    held.unlock();  // before the callback ends, with what it captured
    return loss;
}

}  // namespace monolock::detail
