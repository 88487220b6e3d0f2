#pragma once

#include <algorithm>
#include <cstdint>

namespace monolock::server {

// How many connections an acceptor takes in a turn of its loop: one, and in a rush twice as many as
// in the turn before. A rush is that there were enough for several turns in a row; each time that
// was a mistake, it takes twice as many turns to believe it.
class accept_pace {
public:
    static constexpr int batch_max = 16;  // before sessions have their turn
    static constexpr int patience_max = 64;

    // A connection waits in this turn of the loop.
    void begin_turn(std::uint64_t turn) noexcept {
        in_a_row_ = turn == last_turn_ + 1 ? in_a_row_ + 1 : 0;
        last_turn_ = turn;
        if (in_a_row_ < patience_) {
            allowance_ = 1;
            return;
        }
        allowance_ = std::min(allowance_ * 2, batch_max);
        if (allowance_ == batch_max) {
            patience_ = patience_min;
        }
    }
    [[nodiscard]] int allowance() const noexcept { return allowance_; }

    // There were fewer than allowed.
    void found_less() noexcept {
        in_a_row_ = 0;
        patience_ = std::min(patience_ * 2, patience_max);
    }

private:
    static constexpr int patience_min = 4;

    std::uint64_t last_turn_ = 0;
    int in_a_row_ = 0;  // turns, one after the other, in which there were enough
    int patience_ = patience_min;
    int allowance_ = 1;
};

}  // namespace monolock::server
