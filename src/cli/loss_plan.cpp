#include "cli/loss_plan.hpp"

#include <algorithm>

namespace monolock::cli {

void loss_plan::confirm(time_point until) noexcept {
    if (state_ == state::confirmed) {
        terminate_at_ = until - grace_;
    }
}

void loss_plan::lose(time_point now) noexcept {
    if (state_ == state::confirmed) {
        terminate_at_ = std::min(terminate_at_, now);
        state_ = state::lost;
    }
}

loss_plan::action loss_plan::take(time_point now) noexcept {
    if (state_ != state::killed && now >= kill_at()) {
        state_ = state::killed;
        return action::kill;
    }
    const bool untold = state_ == state::confirmed || state_ == state::lost;
    if (untold && now >= terminate_at_) {
        state_ = state::terminated;
        return action::terminate;
    }
    return action::none;
}

loss_plan::time_point loss_plan::next() const noexcept {
    switch (state_) {
        case state::confirmed:
        case state::lost:
            return terminate_at_;
        case state::terminated:
            return kill_at();
        case state::killed:
            break;
    }
    return time_point::max();
}

}  // namespace monolock::cli
