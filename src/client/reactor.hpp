#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "client/claim.hpp"
#include "posix/descriptor.hpp"

namespace monolock::detail {

// The reading of monolock::boot_clock, as the claim takes it.
[[nodiscard]] claim_time clock_reading() noexcept;

// One epoll instance, one timer on CLOCK_BOOTTIME and one mutex, for the members that share a
// background thread, or that a loop of the application drives. Its one mutex guards everything
// below and every member's state; nothing that blocks, and no code of the application, runs under
// it. Any thread that holds it may step a member: the one that drives does when a socket or a timer
// calls, a caller's thread does when it starts or ends something or wants to know now.
class reactor {
public:
    using guard = std::unique_lock<std::mutex>;

    // What the reactor steps. All calls come with the mutex held.
    class member {
    public:
        member() = default;
        member(const member&) = delete;
        member& operator=(const member&) = delete;
        virtual ~member() = default;

        // The watched descriptor is ready, or has an error.
        virtual void on_ready() = 0;
        // The scheduled time has come. It is no longer scheduled.
        virtual void on_time() = 0;
        // Runs after each of the two, and may unlock the guard meanwhile to call the application.
        virtual void settle(guard& held) = 0;

    private:
        friend class reactor;
        std::uint64_t id_ = 0;
        int watched_ = -1;
        std::uint32_t interest_ = 0;
        std::optional<claim_time> scheduled_;
    };

    // Throws std::system_error if the system gives no descriptors.
    reactor();

    [[nodiscard]] guard lock() { return guard{mutex_}; }

    // The background thread's loop: until stop().
    void run();
    // With the mutex not held.
    void stop();

    // Instead of run(), on any thread and with the mutex not held: does what is due, and blocks for
    // nothing.
    void poll();
    // Readable when poll() has something to do.
    [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }

    // The rest with the mutex held. A member is watched and scheduled only between add and remove.
    void add(std::shared_ptr<member> who);
    void remove(member& who);
    // Replaces what was watched before. `interest` is EPOLLIN, EPOLLOUT or both.
    [[nodiscard]] std::error_code watch(member& who, int fd, std::uint32_t interest);
    // Before the descriptor is closed: a forked child's copy would keep the registration alive.
    void unwatch(member& who) noexcept;
    void schedule(member& who, std::optional<claim_time> when);

private:
    using timer = std::pair<claim_time, member*>;

    void turn(guard& held, int timeout_ms);
    void run_timers(guard& held);
    void arm();

    posix::descriptor epoll_;
    posix::descriptor timer_fd_;
    posix::descriptor wake_fd_;
    std::mutex mutex_;
    bool stopping_ = false;
    std::uint64_t next_id_;
    std::unordered_map<std::uint64_t, std::shared_ptr<member>> members_;
    std::set<timer> timers_;
    std::optional<claim_time> armed_;
};

}  // namespace monolock::detail
