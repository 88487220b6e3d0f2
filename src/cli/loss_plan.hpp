#pragma once

#include <chrono>

#include <monolock/boot_clock.hpp>

namespace monolock::cli {

// When a command that may have lost its lock is told to stop, and when it is killed. Pure: the time
// goes in, the action comes out.
//
//   On silence   TERM a grace before the last confirmed moment, KILL at that moment.
//   On a loss    TERM at once, KILL a grace later. (Whoever lost the lock by an announcement may
//                already have a successor; only the token guards in that window.)
//   Grace zero   no TERM; KILL at the moment where both would fall together.
//
// Once TERM is due or out the command is on its way to its end: a confirmation that comes after
// does not take it back, and does not move the KILL.
class loss_plan {
public:
    using time_point = boot_clock::time_point;

    enum class action { none, terminate, kill };

    loss_plan(std::chrono::nanoseconds grace, time_point confirmed_until) noexcept
        : grace_{grace}, terminate_at_{confirmed_until - grace} {}

    // Ownership is confirmed until this moment. Ignored after a loss and once TERM is out.
    void confirm(time_point until) noexcept;
    // The claim is gone as of now. Ignored once TERM is out.
    void lose(time_point now) noexcept;

    // What is due now. Each action is returned once; terminate never after kill.
    [[nodiscard]] action take(time_point now) noexcept;

    // When to ask again at the latest; time_point::max() when nothing is left to do.
    [[nodiscard]] time_point next() const noexcept;

    // Whether the command was told to stop, or is about to be.
    [[nodiscard]] bool started() const noexcept { return state_ != state::confirmed; }

private:
    enum class state { confirmed, lost, terminated, killed };

    [[nodiscard]] time_point kill_at() const noexcept { return terminate_at_ + grace_; }

    std::chrono::nanoseconds grace_;
    time_point terminate_at_;
    state state_ = state::confirmed;
};

}  // namespace monolock::cli
