#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include <monolock/boot_clock.hpp>

namespace monolock::cli {

// A page of memory that wrapper and guardian share, so that the wrapper can enforce the deadline if
// the guardian cannot (stopped, or starved). Written by the guardian, except `terminated`.
class deadline_page {
public:
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

private:
    struct content {
        std::atomic<std::int64_t> confirmed_until_ns;
        std::atomic<pid_t> group;
        std::atomic<bool> terminated;
    };
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);

    content* page_;
};

}  // namespace monolock::cli
