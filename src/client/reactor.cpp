#include "client/reactor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "monolock/boot_clock.hpp"

namespace monolock::detail {

namespace {

// What epoll calls the reactor's own two descriptors; members come after.
constexpr std::uint64_t timer_id = 0;
constexpr std::uint64_t wake_id = 1;
constexpr std::uint64_t first_member_id = 2;

constexpr std::size_t events_per_turn = 64;

posix::descriptor checked(int fd) {
    if (fd < 0) {
        throw std::system_error{errno, std::system_category()};
    }
    return posix::descriptor{fd};
}

void drain(int fd) noexcept {
    std::uint64_t count = 0;
    // Non-blocking; that there was nothing to read is no matter.
    static_cast<void>(!::read(fd, &count, sizeof count));
}

void add_own(int epoll, int fd, std::uint64_t id) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
}

}  // namespace

claim_time clock_reading() noexcept {
    return claim_time{boot_clock::now().time_since_epoch()};
}

reactor::reactor()
    : epoll_{checked(::epoll_create1(EPOLL_CLOEXEC))},
      timer_fd_{checked(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC))},
      wake_fd_{checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))},
      next_id_{first_member_id} {
    add_own(epoll_.get(), timer_fd_.get(), timer_id);
    add_own(epoll_.get(), wake_fd_.get(), wake_id);
}

void reactor::run() {
    guard held = lock();
    while (!stopping_) {
        turn(held, -1);
    }
}

void reactor::poll() {
    guard held = lock();
    turn(held, 0);
}

void reactor::turn(guard& held, int timeout_ms) {
    std::array<epoll_event, events_per_turn> events{};
    held.unlock();
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    held.lock();
    const auto ready = std::span{events}.first(count > 0 ? static_cast<std::size_t>(count) : 0);
    for (const epoll_event& event : ready) {
        if (event.data.u64 == timer_id) {
            drain(timer_fd_.get());
            armed_.reset();
            continue;
        }
        // By id and not by address: an earlier event of this batch, or another thread, may have
        // ended the member.
        const auto found = members_.find(event.data.u64);
        if (found != members_.end()) {
            const auto who = found->second;
            who->on_ready();
            who->settle(held);
        }
    }
    run_timers(held);
}

void reactor::stop() {
    const guard held = lock();
    stopping_ = true;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_fd_.get(), &one, sizeof one));
}

void reactor::run_timers(guard& held) {
    const claim_time now = clock_reading();
    // Only what is due at this reading, so that the sockets get their turn again.
    std::vector<std::shared_ptr<member>> due;
    while (!timers_.empty() && timers_.begin()->first <= now) {
        member& who = *timers_.begin()->second;
        due.push_back(members_.at(who.id_));
        schedule(who, std::nullopt);
    }
    for (const auto& who : due) {
        if (members_.contains(who->id_)) {
            who->on_time();
            who->settle(held);
        }
    }
    arm();
}

void reactor::add(std::shared_ptr<member> who) {
    who->id_ = next_id_++;
    members_.emplace(who->id_, std::move(who));
}

void reactor::remove(member& who) {
    unwatch(who);
    schedule(who, std::nullopt);
    const std::uint64_t id = who.id_;  // `who` may end with its entry
    members_.erase(id);
}

std::error_code reactor::watch(member& who, int fd, std::uint32_t interest) {
    if (who.watched_ == fd && who.interest_ == interest) {
        return {};
    }
    const bool known = who.watched_ == fd;
    if (!known) {
        unwatch(who);
    }
    epoll_event event{};
    event.events = interest;
    event.data.u64 = who.id_;
    if (::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
        return {errno, std::system_category()};
    }
    who.watched_ = fd;
    who.interest_ = interest;
    return {};
}

void reactor::unwatch(member& who) noexcept {
    if (who.watched_ >= 0) {
        static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, who.watched_, nullptr));
        who.watched_ = -1;
    }
}

void reactor::schedule(member& who, std::optional<claim_time> when) {
    if (who.scheduled_ == when) {
        return;
    }
    // The same node again when there is one: a heartbeat allocates nothing.
    auto node = who.scheduled_ ? timers_.extract(timer{*who.scheduled_, &who})
                               : decltype(timers_)::node_type{};
    if (when && node) {
        node.value().first = *when;
        timers_.insert(std::move(node));
    } else if (when) {
        timers_.emplace(*when, &who);
    }
    who.scheduled_ = when;
    arm();
}

// Sets the timer to the first time due. One that fires too early costs a turn and does no harm, so
// the timer is only ever brought forward here; when it has fired it is set anew.
void reactor::arm() {
    if (timers_.empty()) {
        return;
    }
    const claim_time first = timers_.begin()->first;
    if (armed_ && *armed_ <= first) {
        return;
    }
    using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::seconds;
    const nanoseconds since_boot = std::max(first.time_since_epoch(), nanoseconds{1});
    const seconds whole = duration_cast<seconds>(since_boot);
    itimerspec when{};
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = (since_boot - whole).count();
    static_cast<void>(::timerfd_settime(timer_fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr));
    armed_ = first;
}

}  // namespace monolock::detail
