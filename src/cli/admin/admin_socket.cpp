#include "cli/admin/admin_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/admin/admin_error.hpp"
#include "client/endpoint.hpp"

namespace monolock::cli {

namespace {

using detail::endpoint;
using std::chrono::milliseconds;

std::string system_text(int error) {
    return std::system_category().message(error);
}

[[noreturn]] void throw_unreachable(const std::string& why) {
    throw admin_error{exit_code::unreachable, why};
}

// Until `fd` is ready for `events`.
void await(int fd, short events, int interrupt, deadline by, const char* why) {
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(by - std::chrono::steady_clock::now());
        std::array<pollfd, 2> polled{{{fd, events, 0}, {interrupt, POLLIN, 0}}};
        const int ready =
            ::poll(polled.data(), polled.size(),
                   static_cast<int>(std::clamp<milliseconds::rep>(
                       left.count(), 0, milliseconds{std::chrono::hours{1}}.count())));
        if (polled[1].revents != 0 && ready > 0) {
            throw interrupted{};
        }
        if (ready > 0) {
            return;
        }
        if (ready < 0 && errno != EINTR) {
            throw std::system_error{errno, std::system_category(), "poll"};
        }
        if (std::chrono::steady_clock::now() >= by) {
            throw too_late{why};
        }
    }
}

// The system's resolver knows no deadline. A thread that it holds up is left to itself, and owns
// what it writes to.
std::vector<endpoint> resolve_by(const config::tcp_address& host, deadline by, int interrupt) {
    struct question {
        posix::descriptor answered{::eventfd(0, EFD_CLOEXEC)};
        detail::resolution answer;
    };
    const auto asked = std::make_shared<question>();
    if (!asked->answered) {
        throw std::system_error{errno, std::system_category(), "eventfd"};
    }
    std::thread{[asked, host] {
        asked->answer = detail::resolve(host);
        ::eventfd_write(asked->answered.get(), 1);
    }}.detach();
    await(asked->answered.get(), POLLIN, interrupt, by, "the host's name is not resolved in time");
    eventfd_t count = 0;
    ::eventfd_read(asked->answered.get(), &count);
    if (asked->answer.failed) {
        throw_unreachable(asked->answer.failed.message());
    }
    return std::move(asked->answer.endpoints);
}

std::vector<endpoint> endpoints_of(const config::address& to, deadline by, int interrupt) {
    if (auto known = detail::numeric_endpoints(to)) {
        return *std::move(known);
    }
    return resolve_by(std::get<config::tcp_address>(to), by, interrupt);
}

// The server answers only a Host that it is known by; whatever name it was reached by here, the
// numeric address is one.
std::string host_of(const endpoint& connected) {
    if (connected.family() == AF_UNIX) {
        return "localhost";
    }
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (::getnameinfo(connected.data(), connected.size, host.data(), host.size(), port.data(),
                      port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "localhost";
    }
    const std::string_view text{host.data()};
    const std::string address{text.substr(0, text.find('%'))};  // a zone means something here only
    return (connected.family() == AF_INET6 ? "[" + address + "]" : address) + ":" + port.data();
}

// An errno, or 0.
int connect_to(const endpoint& to, const posix::descriptor& fd, deadline by, int interrupt) {
    if (::connect(fd.get(), to.data(), to.size) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    await(fd.get(), POLLOUT, interrupt, by, "no connection in time");
    int failed = 0;
    socklen_t size = sizeof failed;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    return failed;
}

}  // namespace

admin_socket::admin_socket(const config::address& to, deadline by, int interrupt)
    : interrupt_{interrupt} {
    int failed = EADDRNOTAVAIL;
    auto tries = endpoints_of(to, by, interrupt);
    for (std::size_t at = 0; at < tries.size(); ++at) {
        const endpoint& each = tries[at];
        posix::descriptor fd{
            ::socket(each.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
        if (!fd) {
            failed = errno;
            continue;
        }
        // One that drops everything must not use up the time of those behind it.
        const auto now = std::chrono::steady_clock::now();
        const deadline share = now + (by - now) / static_cast<int>(tries.size() - at);
        try {
            failed = connect_to(each, fd, share, interrupt);
        } catch (const too_late&) {
            failed = ETIMEDOUT;
        }
        if (failed == 0) {
            fd_ = std::move(fd);
            host_ = host_of(each);
            return;
        }
    }
    throw_unreachable(system_text(failed));
}

void admin_socket::send(std::string_view what, deadline by) {
    while (!what.empty()) {
        const ssize_t sent = ::send(fd_.get(), what.data(), what.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            what.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            await(fd_.get(), POLLOUT, interrupt_, by, "the request is not taken in time");
        } else if (errno != EINTR) {
            throw_unreachable(system_text(errno));
        }
    }
}

std::size_t admin_socket::receive(std::span<char> into, deadline by) {
    while (true) {
        await(fd_.get(), POLLIN, interrupt_, by, "no answer in time");
        const ssize_t size = ::recv(fd_.get(), into.data(), into.size(), 0);
        if (size >= 0) {
            return static_cast<std::size_t>(size);
        }
        if (errno != EINTR && errno != EAGAIN) {
            throw_unreachable(system_text(errno));
        }
    }
}

}  // namespace monolock::cli
