// What holds for a claim holds for one over TLS: cases C1, C2, C4, C10, C11, C14 and T3 once more,
// and records that do not keep to the borders of frames.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "honest_server.hpp"
#include "tls_support.hpp"

namespace monolock::testing {
namespace {

class tls_claim : public over_tls {
protected:
    // A client with a granted lock, and the server's end of it.
    struct granted {
        client subject;
        peer connection;
        lock held;
    };
    [[nodiscard]] granted acquire(milliseconds lease, const tls_options& how) {
        client subject = make(how);
        auto call = in_background([&] { return subject.acquire("n", lease); });
        peer connection = accept();
        connection.expect_acquire("n", lease);
        connection.send(acquired_frame(7));
        return {
            .subject = std::move(subject), .connection = std::move(connection), .held = call.get()};
    }
    [[nodiscard]] granted acquire(milliseconds lease = 10s) { return acquire(lease, trusting()); }

    // What the loss is, once it is told.
    static std::error_code await_loss(lock& held) {
        std::promise<std::error_code> told;
        held.on_loss([&](std::error_code why) { told.set_value(why); });
        auto outcome = told.get_future();
        EXPECT_EQ(outcome.wait_for(patience), std::future_status::ready);
        held.on_loss({});
        return held.loss();
    }
};

TEST_P(tls_claim, beats_and_releases_with_a_close_notify) {
    auto one = acquire(400ms);
    EXPECT_EQ(SSL_version(one.connection.channel().native()), GetParam());
    for (int beat = 0; beat < 5; ++beat) {
        one.connection.expect(heartbeat_byte);
        one.connection.send(acquired_frame(7));
    }
    EXPECT_FALSE(one.held.lost());
    one.held.release();
    one.connection.answer_until_eof("");  // a heartbeat may have been on its way
    EXPECT_TRUE(one.connection.heard_close_notify());
}

TEST_P(tls_claim, shows_its_certificate) {
    test::demand_certificate_of(authority, side);
    const auto one = acquire(10s, showing(authority.issue({.common_names = {"worker"}})));
    const X509* const shown = SSL_get0_peer_certificate(one.connection.channel().native());
    ASSERT_NE(shown, nullptr);
}

TEST_P(tls_claim, waits_in_the_queue) {
    client subject = make(trusting());
    auto call = in_background([&] { return subject.acquire("n", 200ms).token(); });
    peer connection = accept();
    connection.expect_acquire("n", 200ms);
    connection.send(waiting_frame);
    for (int beat = 0; beat < 5; ++beat) {
        connection.expect(heartbeat_byte);
        connection.send(waiting_frame);
    }
    connection.send(acquired_frame(9));
    EXPECT_EQ(call.get(), 9U);
}

TEST_P(tls_claim, reads_its_files_anew_at_each_attempt) {
    test::demand_certificate_of(authority, side);
    client subject = make(showing(authority.issue({.common_names = {"first"}})));
    const auto name_shown = [&] {
        auto call = in_background([&] { return subject.acquire("n", 10s); });
        peer connection = accept();
        connection.expect_acquire("n", 10s);
        connection.send(acquired_frame(7));
        const lock held = call.get();
        std::array<char, 64> name{};
        X509* const shown = SSL_get0_peer_certificate(connection.channel().native());
        X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name.data(),
                                  name.size());
        return std::string{name.data()};
    };
    EXPECT_EQ(name_shown(), "first");
    static_cast<void>(showing(authority.issue({.common_names = {"second"}})));
    EXPECT_EQ(name_shown(), "second");
    // The trust too.
    folder.write("ca.pem", test::certificate_authority{"another"}.certificate());
    std::error_code reported;
    auto call = in_background([&] { return subject.acquire("n", 10s, {}, reported); });
    EXPECT_EQ(server.accept().secure(side), tls::status::alerted);
    EXPECT_FALSE(call.get());
    EXPECT_EQ(reported, errc::server_not_trusted);
}

TEST_P(tls_claim, is_lost_at_its_deadline_when_the_server_falls_silent) {
    expect_timely([&]() -> std::string {
        constexpr milliseconds lease{1000};
        auto one = acquire(lease);
        one.connection.expect(heartbeat_byte);
        const auto sent = boot_clock::now();
        one.connection.send(acquired_frame(7));
        const auto why = await_loss(one.held);
        const auto took = boot_clock::now() - sent;
        if (why != errc::heartbeat_timeout) {
            return "reported " + why.message();
        }
        return took > lease * 8 / 10 + prompt || took < lease * 7 / 10
                   ? "took " + milliseconds_text(took)
                   : std::string{};
    });
}

TEST_P(tls_claim, is_lost_at_once_when_the_connection_ends) {
    const auto loss_after = [&](const std::function<void(peer&)>& end) {
        auto one = acquire();
        end(one.connection);
        return await_loss(one.held);
    };
    EXPECT_EQ(loss_after([](peer& it) { it.close(); }), errc::connection_closed);
    EXPECT_EQ(loss_after([](peer& it) { it.reset(); }), errc::connection_closed);
    EXPECT_EQ(loss_after([](peer& it) { it.send(error_frame(2, "")); }),
              errc::closed_by_administrator);
    EXPECT_EQ(loss_after([](peer& it) { it.send("\x7f"); }), errc::protocol_violation);
    // What no key of the connection has sealed.
    EXPECT_EQ(loss_after([](peer& it) {
                  const std::string forged{"\x17\x03\x03\0\x20", 5};
                  const std::string record = forged + std::string(32, 'x');
                  EXPECT_EQ(::send(it.descriptor(), record.data(), record.size(), 0), 37);
              }),
              errc::connection_closed);
}

TEST_P(tls_claim, hears_the_error_before_the_end) {
    for (int round = 0; round < 20; ++round) {
        auto one = acquire();
        one.connection.send(error_frame(1, "bye"));
        one.connection.close();
        EXPECT_EQ(await_loss(one.held), errc::server_shutting_down);
    }
}

// The second frame has left the socket with the first: nothing but TLS knows of it.
TEST_P(tls_claim, takes_several_frames_from_one_record) {
    client subject = make(trusting());
    std::error_code reported;
    auto call = in_background([&] { return subject.acquire("n", 10s, {}, reported); });
    peer connection = accept();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame + acquired_frame(7) + error_frame(1, std::string(255, 'x')));
    lock held = call.get();
    const auto deadline = boot_clock::now() + 5s;
    while (held && !held.lost() && boot_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(held ? held.loss() : reported, errc::server_shutting_down);
}

TEST_P(tls_claim, takes_one_frame_from_many_records) {
    client subject = make(trusting());
    auto call = in_background([&] { return subject.acquire("n", 10s); });
    peer connection = accept();
    connection.expect_acquire("n", 10s);
    for (const char byte : waiting_frame + acquired_frame(7)) {
        connection.send({&byte, 1});
    }
    EXPECT_EQ(call.get().token(), 7U);
}

// The handshake and the frames go through a relay that hands on a byte at a time.
TEST_P(tls_claim, takes_records_in_pieces) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    std::array<int, 2> relayed{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, relayed.data()), 0);
    const auto relay = [](int from, int to) {
        char byte = 0;
        while (::recv(from, &byte, 1, 0) == 1 && ::send(to, &byte, 1, MSG_NOSIGNAL) == 1) {
        }
        ::shutdown(to, SHUT_WR);
    };
    const posix::descriptor near{ends[1]};
    const posix::descriptor far{relayed[0]};
    std::thread out{relay, near.get(), far.get()};
    std::thread back{relay, far.get(), near.get()};
    client_options options = options_with({.ca_file = ca, .server_name = "localhost"});
    options.dialer = [&](const std::string&, const std::stop_token&) { return ends[0]; };
    client subject{options};
    auto call = in_background([&] { return subject.acquire("n", 10s); });
    peer connection{posix::descriptor{relayed[1]}};
    ASSERT_EQ(connection.secure(side), tls::status::ok) << connection.channel().failure();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame);
    connection.send(acquired_frame(7));
    auto held = call.get();
    EXPECT_EQ(held.token(), 7U);
    EXPECT_STREQ(SSL_get_servername(connection.channel().native(), TLSEXT_NAMETYPE_host_name),
                 "localhost");
    held.release();
    EXPECT_EQ(connection.answer_until_eof(""), 0U);
    connection.close();
    out.join();
    back.join();
}

// Records that carry nothing for the client, and some that it has to answer.
TEST_P(tls_claim, is_not_held_up_by_key_updates) {
    if (GetParam() == TLS1_2_VERSION) {
        GTEST_SKIP() << "TLS 1.2 has none";
    }
    auto one = acquire(400ms);
    SSL* const raw = one.connection.channel().native();
    for (int update = 0; update < 100; ++update) {
        ASSERT_EQ(SSL_key_update(raw, update % 10 == 0 ? SSL_KEY_UPDATE_REQUESTED
                                                       : SSL_KEY_UPDATE_NOT_REQUESTED),
                  1);
        ASSERT_EQ(SSL_do_handshake(raw), 1);
    }
    for (int beat = 0; beat < 4; ++beat) {
        one.connection.expect(heartbeat_byte);
        one.connection.send(acquired_frame(7));
    }
    EXPECT_FALSE(one.held.lost());
}

TEST_P(tls_claim, counts_its_ownership_from_sending) {
    expect_timely([&]() -> std::string {
        client subject = make(trusting());
        auto call = in_background([&] { return subject.acquire("n", 1s); });
        peer connection = accept();
        connection.expect_acquire("n", 1s);
        const auto received = boot_clock::now();
        std::this_thread::sleep_for(500ms);
        connection.send(acquired_frame(7));
        const lock held = call.get();
        if (held.lost()) {
            return "lost";
        }
        const auto counted_from = held.confirmed_until() - 800ms;
        return counted_from > received || counted_from < received - 100ms
                   ? "counted from " + milliseconds_text(counted_from - received)
                   : std::string{};
    });
}

TEST_P(tls_claim, belongs_to_the_process_that_acquired) {
    auto one = acquire(400ms);
    auto beats = in_background([&] { return one.connection.answer_until_eof(acquired_frame(7)); });
    for (int round = 0; round < 10; ++round) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const bool reports = one.held.lost() && one.held.loss() == errc::other_process;
            std::error_code reported = make_error_code(errc::other_process);
            if (round % 2 == 0) {
                one.held.release(reported);
            } else {
                one.held = {};
            }
            { const client gone{std::move(one.subject)}; }
            ::_exit(reports && reported == errc::other_process ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "round " << round;
    }
    std::this_thread::sleep_for(450ms);
    EXPECT_FALSE(one.held.lost());
    one.held.release();
    EXPECT_GE(beats.get(), 4U);
    EXPECT_TRUE(one.connection.heard_close_notify());
}

// A lock that is alive when the process exits: OpenSSL must not clean up before it ends.
TEST_P(tls_claim, may_last_until_the_process_exits) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer starts no thread in a child of a process with threads";
#endif
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        static std::optional<client> subject;
        static lock held;
        subject.emplace(make(trusting()));
        held = subject->acquire("n", 200ms);
        std::quick_exit(held ? 0 : 1);
    }
    peer connection = accept();
    connection.expect_acquire("n", 200ms);
    connection.send(acquired_frame(7));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_P(tls_claim, raises_no_sigpipe) {
    ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
    for (int round = 0; round < 20; ++round) {
        auto one = acquire(200ms);
        one.connection.reset();
        EXPECT_EQ(await_loss(one.held), errc::connection_closed);
    }
}

INSTANTIATE_TEST_SUITE_P(versions, tls_claim, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         version_name);

}  // namespace
}  // namespace monolock::testing
