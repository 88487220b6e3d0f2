// A list of addresses over TLS: each server is expected to have its own name.

#include "tls_support.hpp"

namespace monolock::testing {
namespace {

// A second server beside that of over_tls, which has no certificate yet.
class two_over_tls : public over_tls {
protected:
    void show_second(const test::certificate_wishes& wishes) {
        test::show(second_side, authority.issue(wishes));
    }
    void show_first(const test::certificate_wishes& wishes) {
        test::show(side, authority.issue(wishes));
    }

    [[nodiscard]] client_options options_for(const std::string& first, const std::string& other) {
        client_options options = options_with(trusting());
        options.address = first + ":" + std::to_string(server.port()) + "," + other + ":" +
                          std::to_string(second.port());
        return options;
    }

    void serve(scripted_server& at, const tls::context& with) {
        peer next = at.accept();
        ASSERT_EQ(next.secure(with), tls::status::ok) << next.channel().failure();
        next.expect_acquire("n", 10s);
        next.send(acquired_frame(7));
        EXPECT_EQ(next.answer_until_eof(acquired_frame(7)), 0U);
    }

    // Whatever the first says, the handshake comes to nothing.
    void fail_first() {
        peer next = server.accept();
        EXPECT_NE(next.secure(side), tls::status::ok);
    }

    scripted_server second;
    tls::context second_side = tls::make_context(tls::role::server);
};

TEST_P(two_over_tls, each_server_has_its_own_name) {
    show_first({.dns = {"localhost"}});
    show_second({.addresses = {"127.0.0.1"}});
    client subject{options_for("localhost", "127.0.0.1")};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    serve(server, side);
    EXPECT_EQ(call.get(), 7U);
    server.stop_listening();
    call = in_background([&] { return subject.acquire("n", 10s).token(); });
    serve(second, second_side);
    EXPECT_EQ(call.get(), 7U);
}

TEST_P(two_over_tls, a_name_that_is_given_is_for_all) {
    show_second({.dns = {"locks.example"}});
    auto options = options_for("127.0.0.1", "127.0.0.1");
    options.tls->server_name = "locks.example";
    server.stop_listening();
    client subject{std::move(options)};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    serve(second, second_side);
    EXPECT_EQ(call.get(), 7U);
}

TEST_P(two_over_tls, a_server_that_is_not_trusted_is_passed_over) {
    show_first({.dns = {"other.example"}});
    show_second({.addresses = {"127.0.0.1"}});
    client subject{options_for("localhost", "127.0.0.1")};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    fail_first();
    serve(second, second_side);
    EXPECT_EQ(call.get(), 7U);
}

// A standby refuses connections as long as it is one: waiting for it would wait for ever.
TEST_P(two_over_tls, a_standby_does_not_hide_an_active_server_that_is_not_trusted) {
    show_first({.dns = {"other.example"}});
    second.stop_listening();
    client subject{options_for("localhost", "127.0.0.1")};
    std::string detail;
    auto call = in_background([&] {
        try {
            static_cast<void>(subject.acquire_retry("n", 10s));
        } catch (const error& failed) {
            detail = failed.detail();
            return failed.code();
        }
        return std::error_code{};
    });
    fail_first();
    EXPECT_EQ(call.get(), errc::server_not_trusted);
    EXPECT_NE(detail.find("127.0.0.1:" + std::to_string(second.port()) + ": Connection refused"),
              std::string::npos)
        << detail;
    EXPECT_NE(detail.find("localhost:" + std::to_string(server.port())), std::string::npos)
        << detail;
}

TEST_P(two_over_tls, a_server_without_tls_is_passed_over) {
    show_second({.addresses = {"127.0.0.1"}});
    client subject{options_for("localhost", "127.0.0.1")};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    server.accept().send(error_frame(0x13, "unknown message type: 0x16"));
    serve(second, second_side);
    EXPECT_EQ(call.get(), 7U);
}

// What a server does that the kernel answers for while its process stands still.
TEST_P(two_over_tls, a_handshake_that_hangs_costs_no_more_than_a_claim_without_an_answer) {
    show_second({.addresses = {"127.0.0.1"}});
    auto options = options_for("localhost", "127.0.0.1");
    options.connect_timeout = 600ms;
    client subject{std::move(options)};
    constexpr auto lease = 500ms;
    const auto before = boot_clock::now();
    auto call = in_background([&] { return subject.acquire("n", lease).token(); });
    peer next = second.accept();
    EXPECT_GE(boot_clock::now() - before, 0.8 * lease);
    ASSERT_EQ(next.secure(second_side), tls::status::ok);
    next.expect_acquire("n", lease);
    next.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
}

// The server in charge has spoken; with TLS 1.3 only after the ACQUIRE was sent.
TEST_P(two_over_tls, a_certificate_that_is_refused_ends_the_attempt) {
    show_first({.dns = {"localhost"}});
    show_second({.addresses = {"127.0.0.1"}});
    test::demand_certificate_of(authority, side);
    client subject{options_for("localhost", "127.0.0.1")};
    std::error_code reported;
    auto call = in_background(
        [&] { return static_cast<bool>(subject.acquire_retry("n", 10s, {}, reported)); });
    fail_first();
    EXPECT_FALSE(call.get());
    EXPECT_EQ(reported, errc::certificate_refused);
    EXPECT_FALSE(second.accept_within(0ms));
}

INSTANTIATE_TEST_SUITE_P(version, two_over_tls, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         version_name);

}  // namespace
}  // namespace monolock::testing
