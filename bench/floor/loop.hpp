#pragma once

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace monolock::bench::floor {

// The bare epoll loop of the floor servers: one thread, no lock, no session, no lease, no clock. It
// is to be as fast as a bare loop can be, and nothing more:
//
//  - TCP_NODELAY is set once, on the listening socket, from which Linux hands it down.
//  - Connections are edge triggered: a level-triggered one is polled a second time after each read,
//    to find that nothing is left.
//  - close() alone takes a connection out of the epoll set.

// For an answerer: the most that it takes in one receive.
inline constexpr std::size_t input_bytes_max = 4096;

// Ends the process with `what` and the text of errno.
[[noreturn]] void die(const char* what);
// The result of a system call, or the end of the process.
int check(int result, const char* what);

// Raises the soft descriptor limit to the hard one.
void raise_descriptor_limit();

// On a free port of the loopback, which it logs in the server's words.
[[nodiscard]] int listen_on_loopback();

// Adds a descriptor to the epoll set.
void watch(int poller, int descriptor, std::uint32_t events);

// A new connection, non-blocking and watched; -1 if there is none.
[[nodiscard]] int accept_one(int poller, int listener);

// Serves for ever what a listening descriptor brings. The answerer hears of each connection
// (opened) and of each arrival on one (serve), and closes them.
template <class Answerer>
[[noreturn]] void run(Answerer& answerer, int listener = listen_on_loopback()) {
    constexpr int events_max = 256;
    const int poller = check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    watch(poller, listener, EPOLLIN);

    std::array<epoll_event, events_max> events{};
    for (;;) {
        const int ready = ::epoll_wait(poller, events.data(), events_max, -1);
        if (ready < 0 && errno != EINTR) {
            die("epoll_wait");
        }
        for (int i = 0; i < ready; ++i) {
            const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
            if (descriptor != listener) {
                answerer.serve(descriptor);
            } else if (const int connection = accept_one(poller, listener); connection >= 0) {
                answerer.opened(connection);
            }
        }
    }
}

}  // namespace monolock::bench::floor
