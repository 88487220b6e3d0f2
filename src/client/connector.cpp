#include "client/connector.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "monolock/error.hpp"

namespace monolock::detail {

namespace {

// A Unix socket whose backlog is full says EAGAIN at once instead of letting the caller wait.
constexpr std::chrono::milliseconds busy_retry{10};

std::error_code last_error() noexcept {
    return {errno, std::system_category()};
}

void set_flag(int fd, int level, int option) noexcept {
    const int on = 1;
    // A kernel that does not know the option works without it.
    static_cast<void>(::setsockopt(fd, level, option, &on, sizeof on));
}

// A connect to a port of this machine where nobody listens can, with bad luck in the choice of the
// local port, meet itself (simultaneous open).
bool is_connected_to_itself(int fd) noexcept {
    sockaddr_storage near{};
    sockaddr_storage far{};
    socklen_t near_size = sizeof near;
    socklen_t far_size = sizeof far;
    return ::getsockname(fd, reinterpret_cast<sockaddr*>(&near), &near_size) == 0 &&
           ::getpeername(fd, reinterpret_cast<sockaddr*>(&far), &far_size) == 0 &&
           (near.ss_family == AF_INET || near.ss_family == AF_INET6) && near_size == far_size &&
           std::memcmp(&near, &far, near_size) == 0;
}

bool has_verdict(int fd) noexcept {
    pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
    return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

connector::connector(std::vector<endpoint> endpoints, std::optional<endpoint> local,
                     std::chrono::nanoseconds limit)
    : endpoints_{std::move(endpoints)}, local_{local}, limit_{limit} {}

connector::status connector::start(claim_time now) {
    end_ = now + limit_;
    return try_endpoints(now);
}

connector::status connector::proceed(claim_time now) {
    const bool retry_due = retry_at_ && now >= *retry_at_;
    if (retry_at_ && !retry_due && now < share_end_) {
        return status::pending;
    }
    status outcome = status::failed;
    if (now >= share_end_ && (retry_at_ || !has_verdict(socket_.get()))) {
        outcome = refuse(make_error_code(errc::connect_timeout));
    } else {
        outcome = retry_due ? open_and_connect(now) : check_progress();
    }
    if (outcome != status::failed) {
        return outcome;
    }
    ++at_;
    return try_endpoints(now);
}

// From endpoints_[at_] on, until one connects or is on its way.
connector::status connector::try_endpoints(claim_time now) {
    for (; at_ < endpoints_.size(); ++at_) {
        const auto left = std::max(end_ - now, claim_clock::duration{0});
        share_end_ = now + left / static_cast<std::ptrdiff_t>(endpoints_.size() - at_);
        const status outcome = open_and_connect(now);
        if (outcome != status::failed) {
            return outcome;
        }
    }
    return status::failed;
}

std::error_code connector::open_socket() {
    const endpoint& to = endpoints_[at_];
    socket_ =
        posix::descriptor{::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!socket_) {
        return last_error();
    }
    if (to.family() == AF_UNIX) {
        return {};
    }
    set_flag(socket_.get(), IPPROTO_TCP, TCP_NODELAY);
    if (local_) {
        set_flag(socket_.get(), SOL_SOCKET, SO_REUSEADDR);
        set_flag(socket_.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
        if (::bind(socket_.get(), local_->data(), local_->size) != 0) {
            return last_error();
        }
    }
    return {};
}

connector::status connector::open_and_connect(claim_time now) {
    retry_at_.reset();
    if (const auto failed = open_socket()) {
        return refuse(failed);
    }
    const endpoint& to = endpoints_[at_];
    if (::connect(socket_.get(), to.data(), to.size) == 0) {
        return check_progress();
    }
    // An interrupted connect goes on in the background like one that would block.
    if (errno == EINPROGRESS || errno == EINTR) {
        return status::pending;
    }
    if (errno == EAGAIN && to.family() == AF_UNIX) {
        error_ = last_error();
        socket_.reset();
        retry_at_ = std::min(now + busy_retry, share_end_);
        return status::pending;
    }
    return refuse(last_error());
}

connector::status connector::check_progress() {
    if (!has_verdict(socket_.get())) {
        return status::pending;
    }
    int verdict = 0;
    socklen_t size = sizeof verdict;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &verdict, &size) != 0) {
        return refuse(last_error());
    }
    if (verdict != 0) {
        return refuse({verdict, std::system_category()});
    }
    if (is_connected_to_itself(socket_.get())) {
        return refuse({ECONNREFUSED, std::system_category()});
    }
    return status::connected;
}

connector::status connector::refuse(std::error_code why) noexcept {
    error_ = why;
    socket_.reset();
    retry_at_.reset();
    return status::failed;
}

}  // namespace monolock::detail
