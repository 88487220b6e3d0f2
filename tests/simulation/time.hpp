#pragma once

#include <chrono>
#include <cstdint>

namespace monolock::simulation {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Real time in the simulated world, since its beginning. Nobody in that world can read it; the
// rules are judged by it.
using sim_time = std::chrono::nanoseconds;
inline constexpr sim_time never = sim_time::max();

// A machine's clock that does not stop and does not step, but runs too fast or too slow.
class drifting_clock {
public:
    // A rate of 1000 is right; 900 is ten per cent slow.
    constexpr drifting_clock(nanoseconds offset, std::int64_t rate) noexcept
        : offset_{offset}, rate_{rate} {}

    [[nodiscard]] constexpr nanoseconds at(sim_time real) const noexcept {
        return offset_ +
               nanoseconds{real.count() / 1000 * rate_ + real.count() % 1000 * rate_ / 1000};
    }

    // The earliest real time at which the clock shows `reading` or later; not before zero.
    [[nodiscard]] constexpr sim_time when(nanoseconds reading) const noexcept {
        const std::int64_t shown = (reading - offset_).count();
        if (shown <= 0) {
            return sim_time{0};
        }
        std::int64_t real = shown / rate_ * 1000 + shown % rate_ * 1000 / rate_;
        while (at(sim_time{real}) < reading) {
            ++real;
        }
        return sim_time{real};
    }

    [[nodiscard]] constexpr std::int64_t rate() const noexcept { return rate_; }

private:
    nanoseconds offset_;
    std::int64_t rate_;
};

}  // namespace monolock::simulation
