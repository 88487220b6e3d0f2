#include "floor/loop.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>

namespace monolock::bench::floor {

void die(const char* what) {
    std::perror(what);
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

int check(int result, const char* what) {
    if (result < 0) {
        die(what);
    }
    return result;
}

void raise_descriptor_limit() {
    rlimit limit{};
    check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

int listen_on_loopback() {
    const int listener =
        check(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
    const int on = 1;
    check(::setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    check(::bind(listener, generic, size), "bind");
    check(::listen(listener, SOMAXCONN), "listen");
    check(::getsockname(listener, generic, &size), "getsockname");
    std::fprintf(stderr, "level=info msg=\"listening\" address=127.0.0.1:%d\n",
                 ntohs(address.sin_port));
    return listener;
}

void watch(int poller, int descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    check(::epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

// Once for each readiness of the listener, which is level triggered: when connections come one at a
// time, accepting until EAGAIN costs a system call for each of them.
int accept_one(int poller, int listener) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
        watch(poller, connection, EPOLLIN | EPOLLET);
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        die("accept4");
    }
    return connection;
}

}  // namespace monolock::bench::floor
