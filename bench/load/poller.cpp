#include "load/poller.hpp"

#include <algorithm>
#include <cerrno>

namespace monolock::bench {
namespace {

constexpr std::size_t events_max = 256;
constexpr std::chrono::seconds silence_max{10};

timespec to_timespec(std::chrono::nanoseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

poller::poller() : epoll_{::epoll_create1(EPOLL_CLOEXEC)}, events_(events_max) {
    if (epoll_.get() < 0) {
        throw_errno("epoll_create1");
    }
}

void poller::add(int fd, std::size_t index) {
    watch(fd, index, EPOLLIN | EPOLLET);
}

void poller::add_connecting(int fd, std::size_t index) {
    watch(fd, index, EPOLLIN | EPOLLOUT | EPOLLET);
}

void poller::watch(int fd, std::size_t index, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = index;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        throw_errno("epoll_ctl");
    }
}

std::span<const epoll_event> poller::wait(std::optional<std::chrono::nanoseconds> patience) {
    const auto limit =
        to_timespec(std::max(patience.value_or(silence_max), std::chrono::nanoseconds{0}));
    const int ready = ::epoll_pwait2(epoll_.get(), events_.data(), events_max, &limit, nullptr);
    if (ready < 0 && errno != EINTR) {
        throw_errno("epoll_pwait2");
    }
    if (ready == 0 && !patience) {
        throw measurement_error("the server has stopped answering");
    }
    return std::span{events_}.first(static_cast<std::size_t>(std::max(ready, 0)));
}

}  // namespace monolock::bench
