#pragma once

#include <algorithm>
#include <deque>
#include <utility>

namespace monolock::server {

// The order in which handshakes take their steps when more are ready than can be served.
//
// Who has begun goes on first, in the order of arrival: what was computed for it is not lost to a
// timeout. Of those who have not begun the newest begins, since the oldest is the next to be given
// up, by its client or here. In the order of arrival, a storm longer than the clients' patience
// would have every handshake begun and none finished, and the clients come back for more. Now and
// then one begins all the same, so that peers who spin out what they have begun keep nobody out.
template <class Step>
class step_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return begun_.empty() && new_.empty(); }

    void add_begun(Step step) { begun_.push_back(std::move(step)); }
    void add_new(Step step) { new_.push_back(std::move(step)); }

    // Must not be empty.
    [[nodiscard]] Step take() {
        const bool is_turn_of_new = !new_.empty() && (begun_.empty() || in_a_row_ == in_a_row_max);
        in_a_row_ = is_turn_of_new ? 0 : std::min(in_a_row_ + 1, in_a_row_max);
        Step next = std::move(is_turn_of_new ? new_.back() : begun_.front());
        is_turn_of_new ? new_.pop_back() : begun_.pop_front();
        return next;
    }

    // The oldest that have not begun, as far as they are over anyhow. They end in the order of
    // arrival, so that none is kept for long.
    template <class IsOver>
    void forget_oldest(IsOver is_over) {
        while (!new_.empty() && is_over(new_.front())) {
            new_.pop_front();
        }
    }

private:
    static constexpr int in_a_row_max = 7;

    int in_a_row_ = 0;  // steps of those who have begun
    std::deque<Step> begun_;
    std::deque<Step> new_;
};

}  // namespace monolock::server
