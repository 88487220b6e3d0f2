#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "support.hpp"

// This program's own epoll_ctl and send: while the test says so, the system takes no byte and
// watches nothing anew.

namespace {

std::atomic<bool> refuses{false};

}  // namespace

extern "C" {

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
    if (refuses && operation == EPOLL_CTL_MOD) {
        errno = ENOMEM;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
    if (refuses) {
        errno = EAGAIN;
        return -1;
    }
    return ::syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}
}

namespace monolock::testing {
namespace {

TEST(c1_loss_is_told, of_a_held_claim_that_cannot_be_watched_any_more) {
    scripted_server server;
    auto subject = make_client(server.address());
    auto call = in_background([&] { return subject.acquire("n", 2s); });
    auto connection = server.accept();
    connection.expect_acquire("n", 2s);
    connection.send(acquired_frame(7));
    auto held = call.get();
    const std::stop_token told = held.loss_token();

    refuses = true;  // the heartbeat that is due cannot go out
    for (int wait = 0; wait < 5000 && !told.stop_requested(); ++wait) {
        std::this_thread::sleep_for(1ms);
    }
    refuses = false;
    EXPECT_TRUE(told.stop_requested());
    EXPECT_TRUE(held.lost());
    EXPECT_EQ(held.loss(), errc::connection_closed);
}

}  // namespace
}  // namespace monolock::testing
