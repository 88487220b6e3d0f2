#include "server/socket_session.hpp"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/session_engine.hpp"
#include "posix/descriptor.hpp"
#include "support/pki.hpp"
#include "support/tls_server_side.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t receive_max = core::session_engine::receive_bytes_max;
constexpr std::size_t everything = std::size_t{1} << 20U;

// Two ends of a stream.
struct pair {
    posix::descriptor near;
    posix::descriptor far;
};
pair make_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    return {.near = posix::descriptor{ends[0]}, .far = posix::descriptor{ends[1]}};
}

// A session and its client, and the test in the middle of the wire between them.
class socket_session_test : public testing::Test, session_owner {
protected:
    socket_session_test() : client_wire_{make_pair()}, server_wire_{make_pair()} {}
    ~socket_session_test() override {
        session_->drop_connection();
        connections_.turn(false);
    }

    void begin_plain() {
        begin(connection_socket{connections_, {.descriptor = take_server_end(), .slot = {}}});
    }

    void begin_secured() {
        test::certificate_authority authority;
        const tls::context serves = tls::make_context(tls::role::server);
        test::show(serves, authority.issue({.dns = {"server"}}));
        const tls::context asks = tls::make_context(tls::role::client);
        SSL_CTX_set_verify(asks.get(), SSL_VERIFY_NONE, nullptr);
        client_.emplace(asks, tls::role::client, client_wire_.near.get());
        connection_socket socket{connections_, {.descriptor = take_server_end(), .slot = {}}};
        socket.secure({.context = serves});
        auto done = tls::status::wants_read;
        while (done == tls::status::wants_read) {
            static_cast<void>(client_->handshake());
            forward(everything);
            done = socket.handshake();
            pass(server_wire_.far, client_wire_.far, everything);
        }
        ASSERT_EQ(done, tls::status::ok);
        begin(std::move(socket));
    }

    // The client's bytes, in one record; they do not go further than to the test.
    void seal(std::size_t count) {
        const std::vector<std::byte> bytes(count, std::byte{2});
        ASSERT_EQ(client_->send(bytes).count, count);
    }

    // So many bytes of what the client sent go on to the server.
    void forward(std::size_t count) { pass(client_wire_.far, server_wire_.far, count); }

    // How often the session is said to be readable within a while in which nothing else happens.
    int times_readable() {
        readable_ = 0;
        for (int turn = 0; turn < 50; ++turn) {
            connections_.turn(false);
        }
        return readable_;
    }

    core::receive_result receive() { return session_->receive(input_); }

    socket_session& session() { return *session_; }

    // What the session is to do when it is readable.
    std::function<void()> when_readable_;

private:
    void on_readable(socket_session&) override {
        ++readable_;
        if (when_readable_) {
            when_readable_();
        }
    }
    void on_writable(socket_session&) override {}
    void on_linger(connection_socket&&) override {}

    static void pass(const posix::descriptor& from, const posix::descriptor& to,
                     std::size_t count) {
        std::vector<std::byte> bytes(count);
        const ssize_t got = ::recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got > 0) {
            ASSERT_EQ(::send(to.get(), bytes.data(), static_cast<std::size_t>(got), 0), got);
        }
    }

    posix::descriptor take_server_end() { return std::move(server_wire_.near); }

    void begin(connection_socket&& socket) {
        session_ = new socket_session{core::session_id{1}, std::move(socket), {}, {}, *this};
    }

    readiness_set connections_;
    pair client_wire_;
    pair server_wire_;
    std::optional<tls::channel> client_;
    boost::intrusive_ptr<socket_session> session_;
    std::array<std::byte, receive_max> input_{};
    int readable_ = 0;

protected:
    // The plain client's bytes reach the server.
    void send_plain(std::size_t count) {
        const std::vector<std::byte> bytes(count, std::byte{2});
        ASSERT_EQ(::send(server_wire_.far.get(), bytes.data(), count, 0),
                  static_cast<ssize_t>(count));
    }
};

TEST_F(socket_session_test, asking_twice_is_asking_once) {
    begin_plain();
    session().await_readable();
    session().await_readable();
    EXPECT_EQ(times_readable(), 0);
    send_plain(1);
    EXPECT_EQ(times_readable(), 1);
    EXPECT_EQ(times_readable(), 0);
}

TEST_F(socket_session_test, what_a_receive_leaves_over_is_told_again) {
    begin_secured();
    std::vector<std::size_t> counts;
    when_readable_ = [&] {
        counts.push_back(receive().count);
        session().await_readable();
    };
    session().await_readable();
    seal(2 * receive_max + 1);
    forward(everything);
    EXPECT_EQ(times_readable(), 3);
    EXPECT_EQ(counts, (std::vector<std::size_t>{receive_max, receive_max, 1}));
}

// As when a lease is judged: the wait that is under way is for the socket, and would never end.
TEST_F(socket_session_test, what_a_receive_in_between_leaves_over_is_told_too) {
    begin_secured();
    session().await_readable();
    EXPECT_EQ(times_readable(), 0);
    seal(receive_max + 1);
    forward(everything);
    EXPECT_EQ(receive().count, receive_max);
    session().await_readable();
    session().await_readable();
    EXPECT_EQ(times_readable(), 1);
    EXPECT_EQ(receive().count, 1U);
    session().await_readable();
    EXPECT_EQ(times_readable(), 0);

    // And the wait for the socket is still there.
    seal(1);
    forward(everything);
    EXPECT_EQ(times_readable(), 1);
}

// OpenSSL asks for the rest of a record to the byte, so it takes one more turn to find out that
// nothing came after it.
TEST_F(socket_session_test, a_part_of_a_record_is_told_once_and_is_nothing) {
    begin_secured();
    std::vector<core::receive_status> seen;
    when_readable_ = [&] {
        seen.push_back(receive().status);
        session().await_readable();
    };
    session().await_readable();
    seal(1);
    forward(10);
    EXPECT_EQ(times_readable(), 1);
    EXPECT_EQ(times_readable(), 0) << "no turning in circles until the rest comes";
    forward(everything);
    EXPECT_EQ(times_readable(), 2);
    EXPECT_EQ(times_readable(), 0);
    using enum core::receive_status;
    EXPECT_EQ(seen, (std::vector{nothing, bytes, nothing}));
}

// One more turn finds out that the second record is not whole.
TEST_F(socket_session_test, a_record_and_a_part_of_the_next) {
    begin_secured();
    std::vector<core::receive_status> seen;
    when_readable_ = [&] {
        seen.push_back(receive().status);
        session().await_readable();
    };
    session().await_readable();
    seal(1);
    forward(everything);
    EXPECT_EQ(times_readable(), 1);
    seal(2);
    seal(3);
    forward(40);
    EXPECT_EQ(times_readable(), 2);
    EXPECT_EQ(times_readable(), 0);
    forward(everything);
    EXPECT_EQ(times_readable(), 2);
    using enum core::receive_status;
    EXPECT_EQ(seen, (std::vector{bytes, bytes, nothing, bytes, nothing}));
}

TEST_F(socket_session_test, nothing_is_told_after_the_end) {
    begin_secured();
    session().await_readable();
    seal(receive_max + 1);
    forward(everything);
    EXPECT_EQ(receive().count, receive_max);
    session().await_readable();
    session().drop_connection();
    EXPECT_EQ(times_readable(), 0);
}

}  // namespace
}  // namespace monolock::server
