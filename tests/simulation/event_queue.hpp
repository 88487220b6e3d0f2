#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulation/time.hpp"

namespace monolock::simulation {

// What happens next. Events at the same time happen in the order in which they were made, so a run
// depends on its seed alone.
class event_queue {
public:
    // Captures of two words need no allocation; most actions have no more.
    using action = std::function<void()>;

    // Called after each event, also after those that run inside another one.
    void after_each(action check) { after_each_ = std::move(check); }

    void at(sim_time when, action what);
    void in(sim_time delay, action what) { at(now_ + delay, std::move(what)); }

    // Runs the earliest event if it is due at or before `until` and says true; else moves the time
    // on to `until` and says false. May be called by an event: that is how a process that is paused
    // in the midst of a call lets the world go on without it.
    bool run_next(sim_time until);

    [[nodiscard]] sim_time now() const noexcept { return now_; }
    // How many events have happened.
    [[nodiscard]] std::uint64_t step() const noexcept { return step_; }

private:
    struct event {
        sim_time when;
        std::uint64_t number;
        action what;
    };
    static bool later(const event& left, const event& right) noexcept {
        return left.when != right.when ? left.when > right.when : left.number > right.number;
    }

    std::vector<event> heap_;
    action after_each_;
    sim_time now_{0};
    std::uint64_t made_ = 0;
    std::uint64_t step_ = 0;
};

}  // namespace monolock::simulation
