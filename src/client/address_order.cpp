#include "client/address_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace monolock::detail {

namespace {

using std::chrono::nanoseconds;

constexpr int silence_part = 10;  // of the whole
constexpr std::chrono::milliseconds silence_min{250};

}  // namespace

address_order::address_order(std::size_t count) : order_(count) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void address_order::worked(std::size_t address) noexcept {
    const auto at = std::find(order_.begin(), order_.end(), address);
    std::rotate(order_.begin(), at, std::next(at));
}

void address_order::failed(std::size_t address) noexcept {
    const auto at = std::find(order_.begin(), order_.end(), address);
    std::rotate(at, std::next(at), order_.end());
}

address_round::address_round(std::vector<std::size_t> order, nanoseconds whole, manner how,
                             claim_time now)
    : order_{std::move(order)},
      whole_{whole},
      left_{whole},
      began_{now},
      is_list_{order_.size() > 1},
      may_try_again_{is_list_ && how == manner::thorough} {}

std::optional<address_round::step> address_round::next(claim_time now) {
    // An address that took longer than its part (a TLS handshake has its own limit) takes nothing
    // from the others.
    left_ -= std::clamp(now - began_, nanoseconds{0}, share_);
    began_ = now;
    if (tried_ == order_.size() && !begin_second_pass()) {
        return std::nullopt;
    }
    share_ = left_ / static_cast<std::ptrdiff_t>(order_.size() - tried_);
    const nanoseconds hint = std::max<nanoseconds>(whole_ / silence_part, silence_min);
    const bool waits_it_out = !is_list_ || is_second_pass_;
    return step{.address = order_[tried_++],
                .share = share_,
                .silence = waits_it_out ? share_ : std::min(share_, hint)};
}

void address_round::was_silent() {
    silent_.push_back(order_[tried_ - 1]);
}

bool address_round::begin_second_pass() {
    if (!std::exchange(may_try_again_, false) || silent_.empty() || left_ <= nanoseconds{0}) {
        return false;
    }
    is_second_pass_ = true;
    order_ = std::exchange(silent_, {});
    tried_ = 0;
    return true;
}

}  // namespace monolock::detail
