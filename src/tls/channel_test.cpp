#include "tls/channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "posix/descriptor.hpp"
#include "support/pki.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {
namespace {

using test::certificate_authority;
using test::credentials;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

void use(const context& in, const credentials& own) {
    const auto chain = parse_certificates(own.certificate);
    const auto key = parse_private_key(own.key);
    ASSERT_EQ(SSL_CTX_use_certificate(in.get(), chain->front().get()), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey(in.get(), key->get()), 1);
}

void trust(const context& in, const certificate_authority& whom) {
    const auto found = parse_certificates(whom.certificate());
    ASSERT_EQ(X509_STORE_add_cert(SSL_CTX_get_cert_store(in.get()), found->front().get()), 1);
    SSL_CTX_set_verify(in.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

// Two channels over a pair of sockets, stepped by hand.
class channel_test : public testing::TestWithParam<int> {
protected:
    channel_test() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        server_end_ = posix::descriptor{ends[0]};
        client_end_ = posix::descriptor{ends[1]};
        use(server_side_, authority_.issue({.dns = {"server"}}));
        trust(client_side_, authority_);
    }

    void open() {
        server_.emplace(server_side_, role::server, server_end_.get());
        client_.emplace(client_side_, role::client, client_end_.get());
    }

    // Both sides in turn until one of them ends or both are done.
    void shake_hands() {
        for (int turn = 0; turn < 10 && going_on(); ++turn) {
            client_did_ = waits(client_did_) ? client_->handshake() : client_did_;
            server_did_ = waits(server_did_) ? server_->handshake() : server_did_;
        }
    }
    [[nodiscard]] static bool waits(status s) {
        return s == status::wants_read || s == status::wants_write;
    }
    [[nodiscard]] bool going_on() const { return waits(client_did_) || waits(server_did_); }

    void open_and_shake_hands() {
        open();
        shake_hands();
        ASSERT_EQ(client_did_, status::ok) << client_->failure();
        ASSERT_EQ(server_did_, status::ok) << server_->failure();
    }

    static std::string receive_some(channel& from, std::size_t most, status& ended) {
        std::string text(most, '\0');
        const auto got = from.receive(std::as_writable_bytes(std::span{text}));
        ended = got.outcome;
        text.resize(got.count);
        return text;
    }

    certificate_authority authority_;
    context server_side_ = make_context(role::server);
    context client_side_ = make_context(role::client);
    posix::descriptor server_end_;
    posix::descriptor client_end_;
    std::optional<channel> server_;
    std::optional<channel> client_;
    status client_did_ = status::wants_read;
    status server_did_ = status::wants_read;
    status ended_ = status::ok;
};

TEST_P(channel_test, says_and_hears) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    EXPECT_EQ(SSL_version(server_->native()), GetParam());
    EXPECT_EQ(receive_some(*server_, 100, ended_), "");
    EXPECT_EQ(ended_, status::wants_read);
    EXPECT_EQ(client_->send(bytes_of("hello")).count, 5U);
    EXPECT_EQ(receive_some(*server_, 100, ended_), "hello");
    EXPECT_FALSE(server_->holds_input());
    EXPECT_EQ(server_->send(bytes_of("welcome")).count, 7U);
    EXPECT_EQ(receive_some(*client_, 100, ended_), "welcome");
}

TEST_P(channel_test, holds_what_the_caller_had_no_room_for) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    ASSERT_EQ(client_->send(bytes_of("abcdef")).count, 6U);
    ASSERT_EQ(client_->send(bytes_of("gh")).count, 2U);
    EXPECT_EQ(receive_some(*server_, 4, ended_), "abcd");
    EXPECT_TRUE(server_->holds_input());  // the rest of the record
    EXPECT_EQ(receive_some(*server_, 4, ended_), "ef");
    EXPECT_TRUE(server_->holds_input());  // the next record has left the socket too
    EXPECT_EQ(receive_some(*server_, 4, ended_), "gh");
    EXPECT_FALSE(server_->holds_input());
    EXPECT_EQ(receive_some(*server_, 4, ended_), "");
    EXPECT_EQ(ended_, status::wants_read);
}

TEST_P(channel_test, nothing_resumes) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    ASSERT_EQ(server_->send(bytes_of("x")).count, 1U);
    EXPECT_EQ(receive_some(*client_, 4, ended_), "x");  // a ticket would have come before it
    EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get_session(client_->native())), 0);
}

TEST_P(channel_test, close_notify_is_the_peers_word) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    ASSERT_EQ(client_->send(bytes_of("last")).count, 4U);
    client_->send_close_notify();
    EXPECT_EQ(receive_some(*server_, 100, ended_), "last");
    EXPECT_EQ(receive_some(*server_, 100, ended_), "");
    EXPECT_EQ(ended_, status::peer_closed);
    EXPECT_EQ(server_->system_error(), 0);
}

TEST_P(channel_test, an_end_without_close_notify_is_no_failure) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    client_end_.reset();
    EXPECT_EQ(receive_some(*server_, 100, ended_), "");
    EXPECT_EQ(ended_, status::peer_closed);
    server_->send_close_notify();  // nobody is there; nothing happens
}

// With SIGPIPE at its default a signal would end this test.
TEST_P(channel_test, a_send_to_nobody_raises_no_signal) {
    ASSERT_EQ(SSL_CTX_set_max_proto_version(client_side_.get(), GetParam()), 1);
    open_and_shake_hands();
    server_end_.reset();
    EXPECT_EQ(client_->send(bytes_of("x")).outcome, status::peer_closed);
    EXPECT_EQ(client_->system_error(), EPIPE);
}

INSTANTIATE_TEST_SUITE_P(versions, channel_test, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) {
                             return version.param == TLS1_2_VERSION ? "tls_1_2" : "tls_1_3";
                         });

class one_channel : public channel_test {};

TEST_F(one_channel, refuses_an_older_version) {
    context old{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
    SSL_CTX_set_security_level(old.get(), 0);
    ASSERT_EQ(SSL_CTX_set_max_proto_version(old.get(), TLS1_1_VERSION), 1);
    client_side_ = old;
    open();
    shake_hands();
    EXPECT_EQ(server_did_, status::failed);
    EXPECT_EQ(server_->failure(), "unsupported protocol");
}

TEST_F(one_channel, refuses_bytes_that_are_no_tls) {
    open();
    ASSERT_EQ(::send(client_end_.get(), "\x01\x01\0\0\x03\xe8\0\1a", 9, 0), 9);
    server_did_ = server_->handshake();
    EXPECT_EQ(server_did_, status::failed);
    EXPECT_EQ(server_->failure(), "wrong version number");
}

TEST_F(one_channel, says_why_it_does_not_trust) {
    use(server_side_, certificate_authority{"another"}.issue({.dns = {"server"}}));
    open();
    shake_hands();
    EXPECT_EQ(client_did_, status::failed);
    EXPECT_THAT(client_->failure(), testing::StartsWith("certificate verify failed: "));
    EXPECT_EQ(server_did_, status::alerted);
    EXPECT_EQ(server_->alert(), SSL_AD_UNKNOWN_CA);
    EXPECT_EQ(server_->failure(), "unknown ca");
}

// With TLS 1.3 the client is done before the server has seen its certificate.
TEST_F(one_channel, hears_of_its_refusal_after_the_handshake) {
    trust(server_side_, authority_);
    open();
    shake_hands();
    EXPECT_EQ(server_did_, status::failed);
    EXPECT_EQ(client_did_, status::ok);
    EXPECT_EQ(receive_some(*client_, 100, ended_), "");
    EXPECT_EQ(ended_, status::alerted);
    EXPECT_EQ(client_->alert(), SSL_AD_CERTIFICATE_REQUIRED);
    EXPECT_EQ(client_->failure(), "certificate required");
}

// The alert is still read when a send has found the connection gone.
TEST_F(one_channel, reads_the_alert_after_a_send_that_failed) {
    trust(server_side_, authority_);
    open();
    shake_hands();
    ASSERT_EQ(server_did_, status::failed);
    server_end_.reset();
    EXPECT_EQ(client_->send(bytes_of("x")).outcome, status::peer_closed);
    EXPECT_EQ(receive_some(*client_, 100, ended_), "");
    EXPECT_EQ(client_->alert(), SSL_AD_CERTIFICATE_REQUIRED);
}

TEST_F(one_channel, a_part_of_a_record_is_nothing_to_receive) {
    open_and_shake_hands();
    ASSERT_EQ(client_->send(bytes_of("abc")).count, 3U);
    std::array<char, 200> record{};
    const ssize_t size = ::recv(server_end_.get(), record.data(), record.size(), 0);
    ASSERT_GT(size, 6);
    // Put back in two pieces.
    ASSERT_EQ(::send(client_end_.get(), record.data(), 6, 0), 6);
    EXPECT_EQ(receive_some(*server_, 100, ended_), "");
    EXPECT_EQ(ended_, status::wants_read);
    EXPECT_FALSE(server_->holds_input());
    ASSERT_EQ(::send(client_end_.get(), record.data() + 6, static_cast<std::size_t>(size - 6), 0),
              size - 6);
    EXPECT_EQ(receive_some(*server_, 100, ended_), "abc");
}

TEST_F(one_channel, a_send_that_would_block_goes_on_with_the_same_bytes) {
    open_and_shake_hands();
    const std::string piece(10000, 'x');
    std::size_t sent = 0;
    channel::result did{};
    while (did = server_->send(bytes_of(piece)), did.outcome == status::ok) {
        sent += did.count;
        ASSERT_LT(sent, 100U << 20U);
    }
    EXPECT_EQ(did.outcome, status::wants_write);
    server_->send_close_notify();  // does not cut into the record
    std::size_t received = 0;
    std::string more = piece + "y";  // moved, and longer
    bool pending = true;
    while (pending) {
        received += receive_some(*client_, 20000, ended_).size();
        if (ended_ == status::wants_read) {
            did = server_->send(bytes_of(more));
            if (did.outcome == status::ok) {
                sent += did.count;
                pending = false;
            }
        }
    }
    while (received < sent) {
        received += receive_some(*client_, 20000, ended_).size();
        ASSERT_EQ(ended_, status::ok);
    }
    EXPECT_EQ(received, sent);
}

// What the peer may send for ever without sending a byte: the call comes back all the same.
TEST_F(one_channel, key_updates_do_not_keep_the_receiver) {
    open_and_shake_hands();
    for (int turn = 0; turn < 100; ++turn) {
        ASSERT_EQ(SSL_key_update(client_->native(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        ASSERT_EQ(SSL_do_handshake(client_->native()), 1);
    }
    ASSERT_EQ(client_->send(bytes_of("after")).count, 5U);
    std::string heard;
    for (int turn = 0; turn < 10 && heard.empty(); ++turn) {
        heard = receive_some(*server_, 100, ended_);
    }
    EXPECT_EQ(heard, "after");
}

}  // namespace
}  // namespace monolock::tls
