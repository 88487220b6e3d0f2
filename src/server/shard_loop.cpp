#include "server/shard_loop.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "core/assert.hpp"

namespace monolock::server {

namespace {

// The loop whose turn this thread is in.
thread_local const shard_loop* turning_here = nullptr;

posix::descriptor opened(int descriptor, const char* what) {
    if (descriptor < 0) {
        throw std::system_error{errno, std::generic_category(), what};
    }
    return posix::descriptor{descriptor};
}

itimerspec absolute(core::time_point when) noexcept {
    const auto since = when.time_since_epoch();
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
    itimerspec at{};
    at.it_value.tv_sec = whole.count();
    // All zero would mean never.
    at.it_value.tv_nsec = std::max<std::int64_t>(1, core::nanoseconds{since - whole}.count());
    return at;
}

}  // namespace

// Calls back for each edge, as long as the set lives.
class shard_loop::signal_handler final : public readiness_handler {
public:
    static void begin(readiness_set::watch& on, std::function<void()> came) {
        const boost::intrusive_ptr<signal_handler> made{new signal_handler{on, std::move(came)}};
        made->wait_for_next();
    }

private:
    signal_handler(readiness_set::watch& on, std::function<void()> came)
        : watch_{&on}, came_{std::move(came)} {}

    void wait_for_next() {
        watch_->found_empty();
        watch_->await_readable(*this);
    }
    void on_readable() override {
        wait_for_next();
        came_();
    }
    void on_writable() override {}  // never awaited

    readiness_set::watch* watch_;
    std::function<void()> came_;
};

shard_loop::shard_loop()
    : wake_{opened(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")},
      alarm_{opened(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd")},
      wake_watch_{connections_.add(wake_.get())},
      alarm_watch_{connections_.add(alarm_.get())} {
    if (!wake_watch_ || !alarm_watch_) {
        throw std::system_error{errno, std::generic_category(), "epoll"};
    }
    signal_handler::begin(*wake_watch_, [this] { call_others(); });
    signal_handler::begin(*alarm_watch_, [this] { call_passed_timers(); });
}

void shard_loop::enqueue(std::unique_ptr<task> work) {
    if (turning_here == this) {
        own_.push_back(std::move(work));
        return;
    }
    bool first = false;
    {
        const std::lock_guard guard{others_mutex_};
        first = others_.empty();
        others_.push_back(std::move(work));
    }
    if (first) {
        wake();
    }
}

// Each write is an edge, whatever was written before; nobody ever reads.
void shard_loop::wake() const noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one) == sizeof one);
}

void shard_loop::stop() noexcept {
    connections_.stop();
    wake();
}

void shard_loop::run() {
    while (!connections_.is_stopped()) {
        turn(true);
    }
}

void shard_loop::poll() {
    turn(false);
}

void shard_loop::turn(bool may_sleep) {
    turning_here = this;
    const bool had_own = !own_.empty();
    call_own();
    connections_.turn(may_sleep && !had_own);
    call_turn_ends();
    turning_here = nullptr;
}

void shard_loop::call_all(const task_list& work) {
    for (const auto& each : work) {
        if (connections_.is_stopped()) {
            return;
        }
        each->call();
    }
}

void shard_loop::call_own() {
    task_list now;
    now.swap(own_);
    call_all(now);
}

void shard_loop::call_others() {
    task_list now;
    {
        const std::lock_guard guard{others_mutex_};
        now.swap(others_);
    }
    call_all(now);
}

// A timer that is armed anew for a time that has passed waits for the next alarm, so for the next
// turn.
void shard_loop::call_passed_timers() {
    alarm_set_for_ = core::time_point::max();
    const core::time_point now = std::chrono::steady_clock::now();
    armed_timers passed;
    while (!timers_.empty() && timers_.begin()->when_ <= now) {
        timer& next = *timers_.begin();
        timers_.erase(timers_.begin());
        passed.insert(passed.end(), next);
    }
    while (!passed.empty() && !connections_.is_stopped()) {
        timer& next = *passed.begin();
        passed.erase(passed.begin());
        next.passed_();
    }
    set_alarm();
}

void shard_loop::call_turn_ends() {
    for (auto next = turn_ends_.begin(); next != turn_ends_.end() && !connections_.is_stopped();) {
        (next++)->ended_();
    }
}

// The kernel is told only of an earlier time. An alarm that comes too early, because its timer was
// disarmed or armed for later, finds nothing and sets the next.
void shard_loop::set_alarm() noexcept {
    if (timers_.empty() || timers_.begin()->when_ >= alarm_set_for_) {
        return;
    }
    alarm_set_for_ = timers_.begin()->when_;
    const itimerspec at = absolute(alarm_set_for_);
    const int failed = ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
    MONOLOCK_ASSERT(failed == 0);
}

void shard_loop::timer::arm(core::time_point when) {
    disarm();
    when_ = when;
    loop_->timers_.insert(*this);
    loop_->set_alarm();
}

}  // namespace monolock::server
