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
//
// With the argument `handover` it is the floor of another measurement: all connections stand in one
// queue, and when the first closes the next is sent an ACQUIRED frame.

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
#include <deque>
#include <span>
#include <string_view>

#include "protocol/frames.hpp"

namespace {

namespace protocol = monolock::protocol;

constexpr std::size_t input_bytes_max = 4096;
constexpr std::size_t events_max = 256;

using byte_view = std::span<const std::byte>;

[[noreturn]] void die(const char* what) {
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

// On a free port of the loopback, which it logs in the server's words.
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

// What arrived; nothing at the end of the stream and after an error.
byte_view receive(int connection, std::span<std::byte> into) {
    const auto received = ::recv(connection, into.data(), into.size(), 0);
    return into.first(received > 0 ? static_cast<std::size_t>(received) : 0);
}

// A peer that does not read is none of the floor's business: a partial write is a failure.
bool answer(int connection, byte_view bytes) {
    return ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

// An answer for each byte, and no state at all.
class byte_answerer {
public:
    byte_answerer() {
        const auto frame = protocol::encode_acquired(protocol::fencing_token{1});
        for (std::size_t i = 0; i < frames_.size(); ++i) {
            frames_[i] = frame[i % frame.size()];
        }
    }

    void serve(int connection) {
        const auto input = receive(connection, input_);
        if (input.empty()) {
            ::close(connection);
            return;
        }
        const bool acquire =
            input.front() == static_cast<std::byte>(protocol::client_message::acquire);
        const auto frames = acquire ? 1 : input.size();
        if (!answer(connection, byte_view{frames_}.first(frames * protocol::acquired_bytes))) {
            ::close(connection);
        }
    }

private:
    std::array<std::byte, input_bytes_max> input_{};
    std::array<std::byte, input_bytes_max * protocol::acquired_bytes> frames_{};
};

// One queue; the first of it is the owner.
class handover_answerer {
public:
    void serve(int connection) {
        if (receive(connection, input_).empty()) {
            leave(connection);
            return;
        }
        const bool first = queue_.empty();
        queue_.push_back(connection);
        answer(connection, first ? byte_view{acquired_} : byte_view{protocol::waiting_frame});
    }

private:
    void leave(int connection) {
        const bool owner = !queue_.empty() && queue_.front() == connection;
        if (owner) {
            queue_.pop_front();
            if (!queue_.empty()) {
                answer(queue_.front(), acquired_);
            }
        } else {
            std::erase(queue_, connection);  // not while the measurement runs
        }
        ::close(connection);
    }

    std::array<std::byte, input_bytes_max> input_{};
    std::array<std::byte, protocol::acquired_bytes> acquired_ =
        protocol::encode_acquired(protocol::fencing_token{1});
    std::deque<int> queue_;
};

void watch(int poller, int descriptor, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    check(::epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

// Once for each readiness of the listener, which is level triggered: when connections come one at a
// time, accepting until EAGAIN costs a system call for each of them.
void accept_one(int poller, int listener) {
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
        watch(poller, connection, EPOLLIN | EPOLLET);
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        die("accept4");
    }
}

template <class Answerer>
[[noreturn]] void run() {
    static Answerer answerer;
    const int poller = check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
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
                answerer.serve(descriptor);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    raise_descriptor_limit();
    if (argc > 1 && std::string_view{argv[1]} == "handover") {
        run<handover_answerer>();
    }
    run<byte_answerer>();
}
