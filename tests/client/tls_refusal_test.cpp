// Cases T6, T7, C6 and C11: what a client with TLS refuses, what is refused to it, how it says so,
// and what it tries again.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "tls_support.hpp"

namespace monolock::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct report {
    std::error_code code;
    stage at = stage::preparing;
    std::string text;
};

class tls_refusal : public over_tls {
protected:
    // A call that would be repeated if the failure were of that kind.
    static std::future<report> retrying(client& subject) {
        return in_background([&subject]() -> report {
            try {
                subject.with_lock_retry("n", 10s, [](const std::stop_token&, std::uint64_t) {
                    ADD_FAILURE() << "the work ran";
                });
            } catch (const error& failed) {
                EXPECT_EQ(std::string{failed.what()},
                          failed.detail() + (": " + failed.code().message()));
                return {.code = failed.code(), .at = failed.at(), .text = failed.detail()};
            }
            return {};
        });
    }

    // The report of a client whose one connection ends in the handshake.
    report refused(const tls_options& how) {
        client subject = make(how);
        auto call = retrying(subject);
        static_cast<void>(server.accept().secure(side));
        report made = call.get();
        EXPECT_NE(made.code, condition::retryable);
        EXPECT_FALSE(server.accept_within(0ms)) << "a second connection";
        return made;
    }
};

// ---- the server's certificate ----

TEST_P(tls_refusal, a_server_of_another_authority_is_not_trusted) {
    const auto made =
        refused({.ca_file = folder.write("x.pem", test::certificate_authority{"x"}.certificate())});
    EXPECT_EQ(made.code, errc::server_not_trusted);
    EXPECT_EQ(made.at, stage::connecting);
    EXPECT_THAT(made.text, HasSubstr("certificate"));
    EXPECT_EQ(refused({}).code, errc::server_not_trusted) << "the system does not know it either";
}

TEST_P(tls_refusal, an_expired_server_is_not_trusted) {
    test::show(
        side, authority.issue({.addresses = {"127.0.0.1"}, .valid_until = std::chrono::hours{-1}}));
    const auto made = refused(trusting());
    EXPECT_EQ(made.code, errc::server_not_trusted);
    EXPECT_EQ(made.text, "certificate has expired");
}

TEST_P(tls_refusal, the_name_is_that_of_the_address_unless_one_is_given) {
    test::show(side, authority.issue({.dns = {"locks.example.test"}}));
    const auto made = refused(trusting());
    EXPECT_EQ(made.code, errc::server_not_trusted);
    EXPECT_EQ(made.text, "IP address mismatch, its certificate is not for 127.0.0.1");
    const auto other = refused({.ca_file = ca, .server_name = "other.example.test"});
    EXPECT_EQ(other.text, "hostname mismatch, its certificate is not for other.example.test");

    client subject = make({.ca_file = ca, .server_name = "locks.example.test"});
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    peer connection = accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
}

// ---- the client's certificate ----

TEST_P(tls_refusal, a_refused_certificate_is_one_attempt_that_says_which_and_why) {
    test::demand_certificate_of(authority, side);
    const auto expired = authority.issue({.valid_until = std::chrono::hours{-1}});
    const auto made = refused(showing(expired));
    EXPECT_EQ(made.code, errc::certificate_refused);
    EXPECT_EQ(made.code, condition::denied);
    EXPECT_EQ(made.text, folder.path("client.pem") + ": certificate expired (alert 45)");
    // With TLS 1.3 the client had every reason to think that it was through.
    EXPECT_EQ(made.at, GetParam() == TLS1_3_VERSION ? stage::requesting : stage::connecting);

    const auto foreign = refused(showing(test::certificate_authority{"x"}.issue({})));
    EXPECT_EQ(foreign.code, errc::certificate_refused);
    EXPECT_THAT(foreign.text, EndsWith("client.pem: unknown ca (alert 48)"));
}

TEST_P(tls_refusal, a_missing_certificate_is_told_as_such) {
    test::demand_certificate_of(authority, side);
    const auto made = refused(trusting());
    EXPECT_EQ(made.code, errc::certificate_refused);
    EXPECT_EQ(made.text, GetParam() == TLS1_3_VERSION
                             ? "none was given: certificate required (alert 116)"
                             : "none was given: handshake failure (alert 40)");
}

// The server is gone, with a reset, when the refusal is read.
TEST_P(tls_refusal, a_refusal_is_heard_over_a_reset) {
    test::demand_certificate_of(authority, side);
    for (int round = 0; round < 20; ++round) {
        client subject = make(trusting());
        auto call = retrying(subject);
        {
            peer connection = server.accept();
            EXPECT_EQ(connection.secure(side), tls::status::failed);
            std::this_thread::sleep_for(5ms);  // the ACQUIRE comes, unread
        }
        EXPECT_EQ(call.get().code, errc::certificate_refused);
    }
}

// ---- files ----

TEST_P(tls_refusal, files_that_are_wrong_send_nothing) {
    tls_options how = showing(authority.issue({}));
    folder.write("client.key", authority.issue({}).key);
    how.ca_file = folder.path("none.pem");
    client subject = make(how);
    const auto made = retrying(subject).get();
    EXPECT_EQ(made.code, errc::tls_files);
    EXPECT_EQ(made.at, stage::preparing);
    EXPECT_THAT(made.text, AllOf(HasSubstr("none.pem: No such file or directory; "),
                                 HasSubstr("client.key: the key does not belong")));
    EXPECT_FALSE(server.accept_within(20ms));
}

// A rotation replaces two files, one after the other.
TEST_P(tls_refusal, files_that_are_being_replaced_are_read_once_more) {
    const auto own = authority.issue({});
    const auto other = authority.issue({});
    client subject = make(showing(own));
    expect_timely([&]() -> std::string {
        folder.write("client.key", other.key);
        std::error_code reported;
        auto call = in_background([&] { return subject.acquire("n", 10s, {}, reported).token(); });
        std::this_thread::sleep_for(15ms);
        folder.write("client.key", own.key);
        auto connection = server.accept_within(1s);
        if (!connection) {
            call.get();
            return "reported " + reported.message();
        }
        EXPECT_EQ(connection->secure(side), tls::status::ok);
        connection->expect_acquire("n", 10s);
        connection->send(acquired_frame(7));
        EXPECT_EQ(call.get(), 7U);
        return {};
    });
}

// ---- peers that speak something else ----

TEST_P(tls_refusal, a_peer_without_tls) {
    client subject = make(trusting());
    auto call = retrying(subject);
    peer connection = server.accept();
    static_cast<void>(connection.read(5));
    connection.send(error_frame(0x13, "unknown message type: 0x16"));
    const auto made = call.get();
    EXPECT_EQ(made.code, errc::tls_failed);
    EXPECT_THAT(made.text, HasSubstr("the answer is no TLS"));
    EXPECT_FALSE(server.accept_within(0ms));
}

TEST_P(tls_refusal, a_plain_client_is_told_that_the_server_speaks_tls) {
    auto subject = make_client(server.address());
    auto call = retrying(subject);
    peer connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send({"\x15\x03\x01\0\x02\x02\x46", 7});  // protocol_version
    const auto made = call.get();
    EXPECT_EQ(made.code, errc::protocol_violation);
    EXPECT_THAT(made.text, HasSubstr("the server speaks TLS"));
    EXPECT_FALSE(server.accept_within(0ms));
}

// OpenSSL hangs up on what does not look like TLS. So does a server that crashes, so this is tried
// again; but the text has the hint.
TEST_P(tls_refusal, a_plain_client_that_is_not_answered_is_given_a_hint) {
    auto subject = make_client(server.address());
    auto call = in_background([&]() -> report {
        try {
            static_cast<void>(subject.acquire("n", 10s));
        } catch (const error& failed) {
            return {.code = failed.code(), .at = failed.at(), .text = failed.detail()};
        }
        return {};
    });
    {
        peer connection = server.accept();
        EXPECT_EQ(connection.secure(side), tls::status::failed);
    }
    const auto made = call.get();
    EXPECT_EQ(made.code, errc::connection_closed);
    EXPECT_EQ(made.code, condition::retryable);
    EXPECT_THAT(made.text, HasSubstr("TLS"));
}

TEST_P(tls_refusal, a_server_with_nothing_in_common) {
    speak_at_most(TLS1_2_VERSION);
    test::require_tls(SSL_CTX_set_cipher_list(side.get(), "DHE+AESGCM"));
    const auto made = refused(trusting());
    EXPECT_EQ(made.code, errc::tls_failed);
    EXPECT_EQ(made.text, "the server says: handshake failure (alert 40)");
}

// ---- what is tried again ----

TEST_P(tls_refusal, a_handshake_that_breaks_off_is_tried_again) {
    client subject = make(trusting());
    auto call = in_background([&] { return subject.acquire_retry("n", 10s).token(); });
    server.accept().close();
    server.accept().reset();
    peer later = server.accept();
    static_cast<void>(later.read(5));  // a part of what it has to say
    later.close();
    peer connection = accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
}

TEST_P(tls_refusal, codes_are_retried_by_their_range) {
    for (const int code : {0x10, 0x18, 0x7f, 0xff}) {
        client subject = make(trusting());
        auto call = retrying(subject);
        peer connection = accept();
        connection.expect_acquire("n", 10s);
        connection.send(error_frame(static_cast<std::uint8_t>(code), "no"));
        const auto made = call.get();
        EXPECT_EQ(wire_code(made.code), code);
        EXPECT_EQ(made.text, "no");
        EXPECT_FALSE(server.accept_within(0ms)) << code;
    }
    for (const int code : {0x00, 0x01, 0x02, 0x0f}) {
        client subject = make(trusting());
        auto call = in_background([&] { return subject.acquire_retry("n", 10s).token(); });
        peer first = accept();
        first.expect_acquire("n", 10s);
        first.send(error_frame(static_cast<std::uint8_t>(code), ""));
        peer second = accept();
        second.expect_acquire("n", 10s);
        second.send(acquired_frame(7));
        EXPECT_EQ(call.get(), 7U) << code;
    }
}

// ---- time ----

TEST_P(tls_refusal, a_handshake_is_bounded_by_the_connect_timeout) {
    client_options options = options_with(trusting());
    options.connect_timeout = 150ms;
    client subject{options};
    const auto before = boot_clock::now();
    auto call = in_background([&]() -> report {
        try {
            static_cast<void>(subject.acquire("n", 10s));
        } catch (const error& failed) {
            return {.code = failed.code(), .at = failed.at(), .text = failed.detail()};
        }
        return {};
    });
    peer connection = server.accept();
    const auto made = call.get();
    EXPECT_EQ(made.code, errc::connect_timeout);
    EXPECT_EQ(made.code, condition::retryable);
    EXPECT_EQ(made.at, stage::connecting);
    EXPECT_EQ(made.text, "in the TLS handshake");
    EXPECT_GE(boot_clock::now() - before, 150ms);
    EXPECT_LT(boot_clock::now() - before, 500ms);
}

TEST_P(tls_refusal, a_wait_counts_the_handshake) {
    client subject = make(trusting());
    std::error_code reported;
    auto call = in_background([&] { return subject.acquire_for("n", 10s, 100ms, {}, reported); });
    const peer connection = server.accept();
    EXPECT_FALSE(call.get());
    EXPECT_EQ(reported, errc::wait_expired);
}

// Nothing was said yet, or the server has said its part.
TEST_P(tls_refusal, a_stop_in_the_handshake_ends_the_call_and_the_connection) {
    const auto stop_after = [&](bool server_speaks) -> std::string {
        client subject = make(trusting());
        std::stop_source stop;
        std::error_code reported;
        auto call = in_background([&] {
            return static_cast<bool>(subject.acquire_retry("n", 10s, stop.get_token(), reported));
        });
        peer connection = server.accept();
        std::string hello = connection.read(5);
        if (server_speaks) {
            // A record of a handshake that goes on for ever.
            connection.send({"\x16\x03\x03\x40\0\x02\0\x3f\xfc", 9});
        }
        std::this_thread::sleep_for(20ms);
        const auto before = boot_clock::now();
        stop.request_stop();
        EXPECT_FALSE(call.get());
        const auto took = boot_clock::now() - before;
        EXPECT_EQ(reported, errc::stopped);
        static_cast<void>(connection.answer_until_eof(""));  // the rest of the hello, and the end
        EXPECT_FALSE(server.accept_within(0ms));
        return took > prompt ? "took " + milliseconds_text(took) : std::string{};
    };
    expect_timely([&] { return stop_after(false); });
    expect_timely([&] { return stop_after(true); });
}

// ---- options ----

TEST_P(tls_refusal, options_that_would_check_nothing_or_contradict_themselves) {
    const auto code_with = [](const std::string& address, tls_options how) {
        client_options options;
        options.address = address;
        options.tls = std::move(how);
        return code_of([&] { const client refused{options}; });
    };
    EXPECT_EQ(code_with("h:1", {}), std::error_code{});
    EXPECT_EQ(code_with(":1", {}), errc::invalid_options);
    EXPECT_EQ(code_with("unix:/run/m", {}), errc::invalid_options);
    EXPECT_EQ(code_with("unix:/run/m", {.server_name = "h"}), std::error_code{});
    EXPECT_EQ(code_with("h:1", {.server_name = "*.h"}), errc::invalid_options);
    EXPECT_EQ(code_with("h:1", {.certificate_file = "c"}), errc::invalid_options);
    EXPECT_EQ(code_with("h:1", {.key_file = "k"}), errc::invalid_options);
    EXPECT_EQ(code_with("h:1", {.ca_file = std::string{"a\0b", 3}}), errc::invalid_options);
}

INSTANTIATE_TEST_SUITE_P(versions, tls_refusal, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         version_name);

}  // namespace
}  // namespace monolock::testing
