#include "monolock/lock.hpp"

#include <utility>

#include "client/held_claim.hpp"

namespace monolock {

lock::lock() noexcept = default;
lock::lock(std::shared_ptr<detail::held_claim> claim) noexcept : claim_{std::move(claim)} {}
lock::lock(lock&& other) noexcept : claim_{std::exchange(other.claim_, nullptr)} {}

lock& lock::operator=(lock&& other) noexcept {
    if (this != &other) {
        // The old claim ends last, when this handle is whole again: its release may call back.
        const auto old = std::exchange(claim_, std::exchange(other.claim_, nullptr));
    }
    return *this;
}

lock::~lock() = default;

lock::operator bool() const noexcept {
    return claim_ != nullptr;
}

std::uint64_t lock::token() const noexcept {
    return claim_ ? claim_->token() : 0;
}

boot_clock::time_point lock::confirmed_until() const noexcept {
    return claim_ ? claim_->confirmed_until() : boot_clock::time_point{};
}

bool lock::lost() const noexcept {
    const auto claim = claim_;  // a callback that this may run may end the handle
    return claim && claim->lost();
}

std::error_code lock::loss() const noexcept {
    const auto claim = claim_;
    if (!claim) {
        return {};
    }
    const auto why = claim->loss();
    return why ? why->code : std::error_code{};
}

std::stop_token lock::loss_token() const noexcept {
    return claim_ ? claim_->stop().get_token() : std::stop_token{};
}

void lock::on_loss(std::function<void(std::error_code)> callback) {
    if (const auto claim = claim_) {
        claim->on_loss(std::move(callback));
    }
}

void lock::release() {
    const auto claim = std::exchange(claim_, nullptr);
    if (!claim) {
        detail::raise({.code = make_error_code(errc::no_claim),
                       .at = stage::preparing,
                       .detail = {},
                       .admitted = false});
    }
    if (const auto loss = claim->release()) {
        detail::raise(*loss);
    }
}

void lock::release(std::error_code& ec) noexcept {
    const auto claim = std::exchange(claim_, nullptr);
    if (!claim) {
        ec = make_error_code(errc::no_claim);
        return;
    }
    const auto loss = claim->release();
    ec = loss ? loss->code : std::error_code{};
}

int lock::native_handle() const noexcept {
    return claim_ ? claim_->native_handle() : -1;
}

}  // namespace monolock
