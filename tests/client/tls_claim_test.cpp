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
#include <utility>
#include <vector>

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

class tls_1_3_claim : public tls_claim {};

TEST_P(tls_claim, beats_and_releases_with_a_close_notify) {
    auto one = acquire(1200ms);
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
    auto call = in_background([&] { return subject.acquire("n", 800ms).token(); });
    peer connection = accept();
    connection.expect_acquire("n", 800ms);
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
TEST_P(tls_1_3_claim, is_not_held_up_by_key_updates) {
    auto one = acquire(1200ms);
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
    auto one = acquire(2s);
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
    std::this_thread::sleep_for(1600ms);
    EXPECT_FALSE(one.held.lost());
    one.held.release();
    EXPECT_GE(beats.get(), 2U);
    EXPECT_TRUE(one.connection.heard_close_notify());
}

TEST_P(tls_claim, raises_no_sigpipe) {
    ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
    for (int round = 0; round < 20; ++round) {
        auto one = acquire(200ms);
        one.connection.reset();
        EXPECT_EQ(await_loss(one.held), errc::connection_closed);
    }
}

std::size_t entries_of(const char* directory) {
    const std::filesystem::directory_iterator all{directory};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Case C4 with TLS. (Memory is AddressSanitizer's to judge.)
TEST_P(tls_claim, comes_and_goes_without_a_trace) {
    constexpr int threads = 4;
    constexpr int rounds = 100;
    honest_server honest{3ms, side};
    client_options options = options_with(trusting());
    options.address = honest.address();
    const auto resources = [] {
        return std::pair{entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
    };
    const auto before = resources();
    std::atomic<int> lost{0};
    {
        client subject{options};
        std::vector<std::thread> workers;
        workers.reserve(threads);
        for (int worker = 0; worker < threads; ++worker) {
            workers.emplace_back([&, worker] {
                for (int round = 0; round < rounds; ++round) {
                    // Beats after 20 ms; the answer takes 3 ms more.
                    std::error_code reported;
                    auto held =
                        subject.acquire("lock " + std::to_string(worker), 80ms, {}, reported);
                    if (held) {
                        std::this_thread::sleep_for(round % 4 == 0 ? 21ms : 0ms);
                        held.release(reported);
                    }
                    lost += reported ? 1 : 0;
                }
            });
        }
        for (std::thread& each : workers) {
            each.join();
        }
    }
    for (int wait = 0; wait < 1000 && honest.connections() > 0; ++wait) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(honest.connections(), 0);
    EXPECT_LE(lost, threads * rounds / 10) << "the machine may stall for 64 ms, rarely";
    EXPECT_EQ(honest.strange_bytes(), 0U);
    EXPECT_EQ(resources(), before);
}

// Others shake hands without a pause while a claim beats. One thread serves them all: a beat may
// stand behind a handshake of each of them, which is far from the lease on any machine.
TEST_P(tls_claim, is_not_disturbed_by_the_handshakes_of_others) {
    constexpr int herd = 20;
    constexpr std::uint64_t beats = 3;
    honest_server honest{0ms, side};
    client_options options = options_with(trusting());
    options.address = honest.address();
    client subject{options};
    auto held = subject.acquire("held", 2s);
    std::atomic<std::uint64_t> rounds{0};
    std::vector<std::thread> others;
    others.reserve(herd);
    for (int number = 0; number < herd; ++number) {
        others.emplace_back([&, number] {
            while (honest.heartbeats() < beats && !held.lost()) {
                EXPECT_TRUE(subject.acquire_retry("other " + std::to_string(number), 60s));
                ++rounds;
            }
        });
    }
    for (std::thread& each : others) {
        each.join();
    }
    EXPECT_FALSE(held.lost());
    EXPECT_GE(rounds, std::uint64_t{herd});
    EXPECT_EQ(honest.grants(), rounds + 1U);
}

// Acquires a lock that is still there when the process exits, and beats until the end. The client
// is the first to use OpenSSL, as it is in a program that knows of TLS through the library only.
[[noreturn]] void exit_with_a_lock() {
    static lock held;  // ends after whatever OpenSSL would do at the exit
    const test::scratch_folder folder;
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        std::exit(1);
    }
    client_options options;
    options.address = "localhost:1";
    options.tls = tls_options{.ca_file = folder.path("ca.pem")};
    options.dialer = [&](const std::string&, const std::stop_token&) { return ends[0]; };
    client subject{options};

    test::certificate_authority authority;
    folder.write("ca.pem", authority.certificate());
    const tls::context side = tls::make_context(tls::role::server);
    test::show(side, authority.issue({.dns = {"localhost"}}));
    std::thread{[&side, end = ends[1]] {
        peer connection{posix::descriptor{end}};
        static_cast<void>(connection.secure(side));
        connection.expect_acquire("n", 800ms);
        connection.send(acquired_frame(7));
        connection.answer_until_eof(acquired_frame(7));
    }}.detach();
    held = subject.acquire("n", 800ms);
    std::filesystem::remove_all(folder.path(""));
    std::exit(held ? 0 : 1);
}

TEST(tls_at_exit, a_lock_may_last_until_the_process_exits) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own
    EXPECT_EXIT(exit_with_a_lock(), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(versions, tls_claim, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         version_name);

INSTANTIATE_TEST_SUITE_P(version, tls_1_3_claim, ::testing::Values(TLS1_3_VERSION), version_name);

}  // namespace
}  // namespace monolock::testing
