#include "client/backoff.hpp"

#include <algorithm>
#include <utility>

namespace monolock::detail {

std::chrono::nanoseconds backoff::next(attempt_end last, double uniform) noexcept {
    if (last.admitted) {
        *this = backoff{most_};
    }
    if (last.shutting_down && !std::exchange(went_at_once_, true)) {
        return std::chrono::nanoseconds{0};
    }
    const auto nominal =
        std::exchange(nominal_, std::min<std::chrono::nanoseconds>(2 * nominal_, most_));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(nominal * (0.5 + uniform));
}

}  // namespace monolock::detail
