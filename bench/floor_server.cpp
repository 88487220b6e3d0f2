// The floor: the least that a TCP server can spend on monolock's traffic. One thread, a bare epoll
// loop, no lock, no session, no lease, no clock. What the server costs above this is monolock's
// own; what lies below is the kernel's. So it is to be as fast as a bare loop can be, and nothing
// more:
//
//  - TCP_NODELAY is set once, on the listening socket, from which Linux hands it down.
//  - Connections are edge triggered: a level-triggered one is polled a second time after each read,
//    to find that nothing is left.
//  - One receive for each event. A receive that brings less than the buffer holds has emptied the
//    socket, so what comes later raises an edge of its own.
//  - close() alone takes a connection out of the epoll set.
//
// It tells an ACQUIRE from a heartbeat by its first byte, which is all the protocol it knows: an
// ACQUIRE, however long, is answered with one ACQUIRED frame, anything else with one for each byte.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "protocol/frames.hpp"

namespace {

using namespace monolock::protocol;  // NOLINT(google-build-using-namespace): a program of one file

constexpr std::size_t input_bytes_max = 4096;
constexpr std::size_t events_max = 256;

// Ready-made answers to a whole buffer of heartbeats.
using answer_buffer = std::array<std::byte, input_bytes_max * acquired_bytes>;

[[noreturn]] void die(const char* what) {
    std::fprintf(stderr, "floor_server: %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

void check(int result, const char* what) {
    if (result < 0) {
        die(what);
    }
}

void raise_descriptor_limit() {
    rlimit limit{};
    check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max;
    check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

int listen_on_loopback() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(listener, "socket");
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

// Once for each readiness of the listener, which is level triggered: with a connection at a time,
// accepting until EAGAIN would cost a system call for each of them.
void accept_one(int poller, int listener) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
        watch(poller, connection, EPOLLIN | EPOLLET);
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        die("accept4");
    }
}

void serve(int connection, const answer_buffer& answers) {
    std::array<std::byte, input_bytes_max> input;
    const auto received = ::recv(connection, input.data(), input.size(), 0);
    if (received <= 0) {
        ::close(connection);
        return;
    }
    const bool acquire = input[0] == static_cast<std::byte>(client_message::acquire);
    const auto frames = acquire ? std::size_t{1} : static_cast<std::size_t>(received);
    const auto wanted = frames * acquired_bytes;
    // A peer that does not read is none of the floor's business; a partial write ends it.
    if (::send(connection, answers.data(), wanted, MSG_NOSIGNAL) != static_cast<ssize_t>(wanted)) {
        ::close(connection);
    }
}

}  // namespace

int main() {
    raise_descriptor_limit();
    static answer_buffer answers;
    const auto frame = encode_acquired(fencing_token{1});
    for (std::size_t i = 0; i < answers.size(); ++i) {
        answers[i] = frame[i % frame.size()];
    }

    const int poller = ::epoll_create1(EPOLL_CLOEXEC);
    check(poller, "epoll_create1");
    const int listener = listen_on_loopback();
    watch(poller, listener, EPOLLIN);

    std::array<epoll_event, events_max> events{};
    for (;;) {
        const int ready = ::epoll_wait(poller, events.data(), events_max, -1);
        if (ready < 0 && errno != EINTR) {
            die("epoll_wait");
        }
        for (int i = 0; i < ready; ++i) {
            const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
            if (descriptor == listener) {
                accept_one(poller, listener);
            } else {
                serve(descriptor, answers);
            }
        }
    }
}
