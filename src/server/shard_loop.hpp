#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "posix/descriptor.hpp"
#include "server/cache_line.hpp"
#include "server/readiness_set.hpp"

namespace monolock::server {

// The event loop of a shard's thread: connections, posted work and timers, over one epoll set that
// the thread sleeps in (docs/decisions/0018). A turn calls what was posted by this thread itself
// before, then a batch of what is ready; so nobody who comes again and again keeps the others from
// their turns. Handlers must not throw. post() and stop() may be called from any thread, all else
// from the loop's, or while none runs it.
class shard_loop {
public:
    class timer;
    class turn_end;

    // Throws std::system_error.
    shard_loop();
    shard_loop(const shard_loop&) = delete;
    shard_loop& operator=(const shard_loop&) = delete;
    // What was posted and never called is destroyed, and timers are forgotten.
    ~shard_loop() = default;

    [[nodiscard]] readiness_set& connections() noexcept { return connections_; }

    // Has `work` called by the loop's thread, after what was posted by the same thread before,
    // never within this call. Throws std::bad_alloc.
    template <class Work>
    void post(Work&& work) {
        enqueue(std::make_unique<task_of<std::decay_t<Work>>>(std::forward<Work>(work)));
    }

    // Turns until stop().
    void run();
    // Has the loop return as soon as what it is calling returns, or at once if it comes to run
    // later. Nothing is called after that.
    void stop() noexcept;
    // One turn that does not sleep.
    void poll();

private:
    struct task {
        virtual ~task() = default;
        virtual void call() = 0;
    };
    template <class Work>
    struct task_of final : task {
        explicit task_of(Work&& with) : work{std::move(with)} {}
        explicit task_of(const Work& with) : work{with} {}
        void call() override { work(); }
        Work work;
    };
    using task_list = std::vector<std::unique_ptr<task>>;

    // What the loop itself waits for: the wake-up and the timer. Both are edges; nothing is read.
    class signal_handler;

    using hook = boost::intrusive::set_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
    using list_hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

public:
    // Calls back once, in a turn at or after the time it is armed for. Armed anew it forgets the
    // time before.
    class timer {
    public:
        timer(shard_loop& on, std::function<void()> passed)
            : loop_{&on}, passed_{std::move(passed)} {}
        timer(const timer&) = delete;
        timer& operator=(const timer&) = delete;
        ~timer() = default;  // disarmed

        void arm(core::time_point when);
        void disarm() noexcept { in_armed_.unlink(); }
        [[nodiscard]] bool is_armed() const noexcept { return in_armed_.is_linked(); }
        // The time it is, or was, armed for.
        [[nodiscard]] core::time_point when() const noexcept { return when_; }

    private:
        friend class shard_loop;

        shard_loop* loop_;
        std::function<void()> passed_;
        core::time_point when_{};
        hook in_armed_;
    };

    // Calls back at the end of each turn, this one included, from arm() to disarm(). The callback
    // may disarm this one, and no other.
    class turn_end {
    public:
        turn_end(shard_loop& on, std::function<void()> ended)
            : loop_{&on}, ended_{std::move(ended)} {}
        turn_end(const turn_end&) = delete;
        turn_end& operator=(const turn_end&) = delete;
        ~turn_end() = default;  // disarmed

        void arm() noexcept {
            disarm();
            loop_->turn_ends_.push_back(*this);
        }
        void disarm() noexcept { in_armed_.unlink(); }

    private:
        friend class shard_loop;

        shard_loop* loop_;
        std::function<void()> ended_;
        list_hook in_armed_;
    };

private:
    struct earlier {
        bool operator()(const timer& one, const timer& other) const noexcept {
            return one.when_ < other.when_;
        }
    };
    using armed_timers = boost::intrusive::multiset<
        timer, boost::intrusive::member_hook<timer, hook, &timer::in_armed_>,
        boost::intrusive::compare<earlier>, boost::intrusive::constant_time_size<false>>;
    using armed_turn_ends = boost::intrusive::list<
        turn_end, boost::intrusive::member_hook<turn_end, list_hook, &turn_end::in_armed_>,
        boost::intrusive::constant_time_size<false>>;

    void enqueue(std::unique_ptr<task> work);
    void call_all(const task_list& work);
    void wake() const noexcept;
    void turn(bool may_sleep);
    void call_own();
    void call_others();
    void call_passed_timers();
    void set_alarm() noexcept;
    void call_turn_ends();

    posix::descriptor wake_;
    posix::descriptor alarm_;
    readiness_set connections_;
    readiness_set::watch_ptr wake_watch_;
    readiness_set::watch_ptr alarm_watch_;
    armed_timers timers_;
    armed_turn_ends turn_ends_;
    core::time_point alarm_set_for_ = core::time_point::max();
    task_list own_;  // posted by the loop's thread: no lock, no wake-up
    // Written by other threads, so apart from what each turn reads.
    alignas(cache_line_bytes) std::mutex others_mutex_;
    task_list others_;
};

}  // namespace monolock::server
