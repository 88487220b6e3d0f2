#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tls_support.hpp"

// This program's own epoll_ctl and send: while the test says so, the system takes no byte and
// watches nothing anew; or a send fails because the other side is gone.

namespace {

std::atomic<bool> refuses{false};

// A server's descriptor. Its first record that looks like application data (with TLS 1.3 an alert
// does) waits for the client's, and the client's send then fails as one to nobody does, with the
// server's record there to be read.
std::atomic<int> refusing_server{-1};
std::atomic<bool> client_sends{false};

// Whether this send is the client's that fails.
bool is_cut_off(int fd, const void* bytes) {
    constexpr char application_data = 0x17;
    if (refusing_server < 0 || *static_cast<const char*>(bytes) != application_data) {
        return false;
    }
    if (fd == refusing_server) {
        for (int wait = 0; wait < 10'000 && !client_sends; ++wait) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return false;
    }
    client_sends = true;
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 10'000) == 1;
}

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
    if (is_cut_off(fd, bytes)) {
        errno = EPIPE;
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

// With TLS 1.3 the refusal comes when the client is about to send its ACQUIRE; if the server has
// gone since, it is the send that fails.
class t7_refused_certificate : public over_tls {};

TEST_P(t7_refused_certificate, is_read_after_a_send_that_failed) {
    test::demand_certificate_of(authority, side);
    client subject = make(trusting());
    std::error_code reported;
    auto call = in_background([&] { return subject.acquire("n", 10s, {}, reported); });
    peer connection = server.accept();
    refusing_server = connection.descriptor();
    EXPECT_EQ(connection.secure(side), tls::status::failed);
    EXPECT_FALSE(call.get());
    refusing_server = -1;
    EXPECT_TRUE(client_sends);
    EXPECT_EQ(reported, errc::certificate_refused);
}

INSTANTIATE_TEST_SUITE_P(version, t7_refused_certificate, ::testing::Values(TLS1_3_VERSION),
                         version_name);

}  // namespace
}  // namespace monolock::testing
