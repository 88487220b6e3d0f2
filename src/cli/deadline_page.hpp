#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include <monolock/boot_clock.hpp>

namespace monolock::cli {

// A page of memory that wrapper and guardian share, so that the wrapper can enforce the deadline if
// the guardian cannot (stopped, or starved), and does not stop along with a command that runs
// again. Written by the guardian, except `terminated` and `stop_now`.
class deadline_page {
public:
    // A stop of the command: told to the wrapper, which then stops too, by itself or with its
    // group.
    enum class stop : int { none, told, followed, followed_by_group };

    // Before the fork. Throws std::system_error.
    deadline_page();
    ~deadline_page();
    deadline_page(const deadline_page&) = delete;
    deadline_page& operator=(const deadline_page&) = delete;

    // First before the wrapper is told that there will be a command, then often.
    void publish(boot_clock::time_point confirmed_until) noexcept {
        page_->confirmed_until_ns = confirmed_until.time_since_epoch().count();
    }
    [[nodiscard]] boot_clock::time_point confirmed_until() const noexcept {
        return boot_clock::time_point{boot_clock::duration{page_->confirmed_until_ns.load()}};
    }

    // The command's process group while it has members that nobody reaped; 0 before and after.
    void set_group(pid_t group) noexcept { page_->group = group; }
    [[nodiscard]] pid_t group() const noexcept { return page_->group; }

    // True for the one caller that is to send TERM.
    [[nodiscard]] bool claim_terminate() noexcept { return !page_->terminated.exchange(true); }
    // Whether either of them has claimed it.
    [[nodiscard]] bool terminate_claimed() const noexcept { return page_->terminated; }

    // The guardian has seen the command stop, and tells the wrapper next. One that stopped along
    // with an earlier stop is there already.
    void begin_stop() noexcept { change_stop(stop::none, stop::told); }
    // The guardian has seen it continue. Returns who is to be continued along with it.
    [[nodiscard]] stop end_stop() noexcept { return page_->stop_now.exchange(stop::none); }
    // The wrapper, before it stops: false if the command runs again.
    [[nodiscard]] bool follow_stop(stop how) noexcept { return change_stop(stop::told, how); }
    // The same, when the wrapper is on its way to stop.
    [[nodiscard]] bool follows(stop how) const noexcept { return page_->stop_now == how; }
    // The wrapper was continued, and continues the command: the guardian need not continue it.
    void leave_stop() noexcept {
        change_stop(stop::followed, stop::none);
        change_stop(stop::followed_by_group, stop::none);
    }

private:
    bool change_stop(stop from, stop to) noexcept {
        return page_->stop_now.compare_exchange_strong(from, to);
    }

    struct content {
        std::atomic<std::int64_t> confirmed_until_ns;
        std::atomic<pid_t> group;
        std::atomic<bool> terminated;
        std::atomic<stop> stop_now;
    };
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);

    content* page_;
};

}  // namespace monolock::cli
