// Cases C9, C10, C14: what may be done to a handle, to the process, and to the connection.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "support.hpp"

namespace monolock::testing {
namespace {

// A client with a granted lock, and the server's end of it.
struct granted {
    explicit granted(scripted_server& server, milliseconds lease = 10s)
        : subject{make_client(server.address())} {
        auto call = in_background([&] { return subject.acquire("n", lease); });
        connection = server.accept();
        connection->expect_acquire("n", lease);
        connection->send(acquired_frame(7));
        held = call.get();
    }

    client subject;
    std::optional<peer> connection;
    lock held;
};

TEST(c9_handles, an_empty_handle_says_so) {
    lock empty;
    EXPECT_FALSE(empty);
    EXPECT_EQ(empty.token(), 0U);
    EXPECT_FALSE(empty.lost());
    EXPECT_FALSE(empty.loss());
    EXPECT_EQ(empty.native_handle(), -1);
    EXPECT_FALSE(empty.loss_token().stop_possible());
    empty.on_loss([](std::error_code) { FAIL(); });
    EXPECT_EQ(code_of([&] { empty.release(); }), errc::no_claim);
    std::error_code reported;
    empty.release(reported);
    EXPECT_EQ(reported, errc::no_claim);
}

TEST(c9_handles, a_second_release_reports_and_touches_nothing) {
    scripted_server server;
    granted one{server};
    granted other{server};
    EXPECT_EQ(one.held.token(), 7U);
    one.held.release();
    EXPECT_FALSE(one.held);
    EXPECT_EQ(code_of([&] { one.held.release(); }), errc::no_claim);
    EXPECT_TRUE(one.connection->ends_within(soon));
    EXPECT_TRUE(other.connection->quiet_for(20ms));
    EXPECT_FALSE(other.held.lost());
}

TEST(c9_handles, a_move_takes_the_claim_along) {
    scripted_server server;
    granted one{server};
    granted other{server};
    lock moved{std::move(one.held)};
    EXPECT_FALSE(one.held);  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(moved.token(), 7U);
    lock& itself = moved;
    moved = std::move(itself);
    EXPECT_TRUE(moved);
    EXPECT_TRUE(one.connection->quiet_for(10ms));
    moved = std::move(other.held);
    EXPECT_TRUE(one.connection->ends_within(soon)) << "the claim that was overwritten";
    EXPECT_TRUE(other.connection->quiet_for(10ms));
    moved = lock{};
    EXPECT_TRUE(other.connection->ends_within(soon));
}

TEST(c9_handles, the_destructor_releases) {
    scripted_server server;
    std::optional<granted> one{std::in_place, server};
    one->held = {};
    EXPECT_TRUE(one->connection->ends_within(soon));
}

TEST(c9_handles, a_lock_outlives_its_client) {
    scripted_server server;
    std::optional<peer> connection;
    lock held;
    {
        granted one{server, 800ms};
        connection = std::move(one.connection);
        held = std::move(one.held);
    }
    for (int beat = 0; beat < 5; ++beat) {
        connection->expect(heartbeat_byte);
        connection->send(acquired_frame(7));
    }
    EXPECT_FALSE(held.lost());
    held.release();
    EXPECT_EQ(connection->answer_until_eof(""), 0U);
}

TEST(c9_handles, a_stop_callback_may_destroy_the_handle_and_with_it_the_client) {
    scripted_server server;
    auto one = std::make_unique<granted>(server);
    peer connection = *std::move(one->connection);
    std::promise<void> destroyed;
    auto done = destroyed.get_future();
    using callback = std::stop_callback<std::function<void()>>;
    std::unique_ptr<callback> on_stop;
    on_stop = std::make_unique<callback>(one->held.loss_token(), [&] {
        one.reset();
        destroyed.set_value();
    });
    connection.send(error_frame(2, ""));
    EXPECT_EQ(done.wait_for(patience), std::future_status::ready);
    EXPECT_TRUE(connection.ends_within(soon));
}

TEST(c9_handles, an_on_loss_callback_may_destroy_the_handle_or_throw) {
    scripted_server server;
    granted other{server};
    {
        auto one = std::make_unique<granted>(server);
        peer connection = *std::move(one->connection);
        std::promise<std::error_code> told;
        one->held.on_loss([&](std::error_code why) {
            one.reset();
            told.set_value(why);
        });
        connection.send(error_frame(2, ""));
        EXPECT_EQ(told.get_future().get(), errc::closed_by_administrator);
    }
    granted third{server};
    std::promise<void> told;
    third.held.on_loss([&](std::error_code) {
        told.set_value();
        throw 1;
    });
    third.connection->reset();
    told.get_future().wait();
    EXPECT_TRUE(third.held.lost());
    EXPECT_EQ(third.held.loss(), errc::connection_closed);
    // The work is told first; then the connection closes.
    for (int wait = 0; wait < 1000 && third.held.native_handle() >= 0; ++wait) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(third.held.native_handle(), -1);
    EXPECT_FALSE(other.held.lost());
    EXPECT_TRUE(other.connection->quiet_for(10ms));
}

TEST(c9_handles, acquiring_in_a_callback_of_the_background_thread_fails_at_once) {
    scripted_server server;
    granted one{server};
    auto subject = make_client(server.address());
    std::promise<std::error_code> told;
    auto call = in_background([&] { return subject.acquire("n", 10s); });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    auto held = call.get();
    held.on_loss([&](std::error_code) {
        std::error_code refused;
        const auto again = subject.acquire_for("n", 10s, 1s, {}, refused);
        told.set_value(refused);
    });
    connection.close();
    auto outcome = told.get_future();
    ASSERT_EQ(outcome.wait_for(5s), std::future_status::ready);
    const std::error_code refused = outcome.get();
    EXPECT_EQ(refused, errc::in_callback);
    EXPECT_EQ(refused, condition::misuse);
}

TEST(c9_handles, on_loss_of_a_lost_claim_calls_back_at_once_and_once) {
    scripted_server server;
    granted one{server};
    one.connection->close();
    while (!one.held.lost()) {
        std::this_thread::sleep_for(1ms);
    }
    int calls = 0;
    one.held.on_loss([&](std::error_code) { ++calls; });
    EXPECT_EQ(calls, 1);
    one.held.on_loss({});
    std::error_code reported;
    one.held.release(reported);
    EXPECT_EQ(reported, errc::connection_closed);
    EXPECT_EQ(calls, 1);
}

TEST(c9_handles, release_waits_for_a_callback_that_runs) {
    scripted_server server;
    granted one{server};
    std::promise<void> entered;
    std::atomic<bool> left{false};
    one.held.on_loss([&](std::error_code) {
        entered.set_value();
        std::this_thread::sleep_for(50ms);
        left = true;
    });
    one.connection->close();
    entered.get_future().wait();
    std::error_code reported;
    one.held.release(reported);
    EXPECT_TRUE(left);
}

// The loss is told to the token first. Whoever wakes by that and lets the handle go must not
// thereby keep on_loss from being called.
TEST(c9_handles, a_callback_that_is_owed_is_called_before_a_release_returns) {
    scripted_server server;
    granted one{server};
    std::atomic<bool> called{false};
    one.held.on_loss([&](std::error_code) { called = true; });
    std::promise<void> woken;
    std::promise<void> released;
    const std::stop_callback on_stop{one.held.loss_token(), [&] {
                                         woken.set_value();
                                         released.get_future().wait_for(200ms);
                                     }};
    one.connection->close();
    woken.get_future().wait();
    EXPECT_TRUE(one.held.lost());
    { const lock ends = std::move(one.held); }
    released.set_value();
    EXPECT_TRUE(called);
}

TEST(c9_handles, a_stop_callback_that_destroys_the_handle_leaves_on_loss_its_call) {
    scripted_server server;
    auto one = std::make_unique<granted>(server);
    peer connection = *std::move(one->connection);
    std::promise<std::error_code> told;
    auto outcome = told.get_future();
    one->held.on_loss([&](std::error_code why) { told.set_value(why); });
    using callback = std::stop_callback<std::function<void()>>;
    const auto on_stop = std::make_unique<callback>(one->held.loss_token(), [&] { one.reset(); });
    connection.send(error_frame(2, ""));
    ASSERT_EQ(outcome.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(outcome.get(), errc::closed_by_administrator);
}

TEST(c9_handles, what_a_callback_captured_ends_outside_the_librarys_lock) {
    scripted_server server;
    granted one{server};
    granted two{server};
    // The callback owns another lock of the same kind; dropping it releases that.
    const auto owned = std::make_shared<lock>(std::move(two.held));
    one.held.on_loss([owned = std::shared_ptr<lock>{owned}](std::error_code) {});
    const_cast<std::shared_ptr<lock>&>(owned).reset();
    one.held.on_loss({});
    EXPECT_TRUE(two.connection->ends_within(soon));
}

TEST(c9_handles, a_claim_past_its_deadline_is_lost_before_any_thread_notices) {
    // A stopped process: no thread of it runs, the deadline passes, all run again.
    scripted_server server;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool fine = false;
        {
            auto subject = make_client(server.address());
            const auto held = subject.acquire("n", 200ms);
            ::raise(SIGSTOP);
            fine = held.lost() && held.loss() == errc::heartbeat_timeout;
        }
        ::_exit(fine ? 0 : 1);
    }
    auto connection = server.accept();
    connection.expect_acquire("n", 200ms);
    connection.send(acquired_frame(7));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status));
    std::this_thread::sleep_for(300ms);
    ::kill(child, SIGCONT);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(c10_fork, a_childs_exit_does_not_end_the_parents_claim) {
    scripted_server server;
    granted one{server, 2s};
    auto beats = in_background([&] { return one.connection->answer_until_eof(acquired_frame(7)); });
    for (int round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const bool reports = one.held.lost() && one.held.loss() == errc::other_process;
            std::error_code reported;
            if (round % 2 == 0) {
                one.held.release(reported);
            } else {
                one.held = {};
                reported = make_error_code(errc::other_process);
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
}

TEST(c10_fork, a_child_that_lives_on_does_not_keep_the_lock) {
    scripted_server server;
    granted one{server};
    std::array<int, 2> gate{};
    ASSERT_EQ(::pipe2(gate.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::close(gate[1]);
        char byte = 0;
        static_cast<void>(::read(gate[0], &byte, 1) != 0);
        ::_exit(0);
    }
    one.held.release();
    EXPECT_TRUE(one.connection->ends_within(soon));
    ::close(gate[1]);
    ::close(gate[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
}

TEST(c10_fork, the_work_of_a_child_reports_the_loss_and_the_parents_goes_on) {
    scripted_server server;
    auto subject = make_client(server.address());
    pid_t child = -1;
    std::error_code reported;
    auto play = in_background([&] {
        auto connection = server.accept();
        connection.expect_acquire("n", 10s);
        connection.send(acquired_frame(7));
        return connection.answer_until_eof(acquired_frame(7));
    });
    subject.with_lock(
        "n", 10s, [&](const std::stop_token&, std::uint64_t) { child = ::fork(); }, {}, reported);
    if (child == 0) {
        ::_exit(reported == errc::other_process ? 0 : 1);
    }
    EXPECT_FALSE(reported);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    play.get();
}

TEST(c10_fork, a_child_may_use_the_client_anew) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer starts no thread in a child of a process with threads";
#endif
    scripted_server server;
    granted one{server};
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::error_code reported;
        const auto own = one.subject.acquire("n", 10s, {}, reported);
        ::_exit(own.token() == 8 && !own.lost() ? 0 : 1);
    }
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(8));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(one.held.lost());
}

TEST(c14_sigpipe, is_never_raised) {
    ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
    scripted_server server;
    for (int round = 0; round < 50; ++round) {
        granted one{server, 200ms};
        one.connection->reset();
        for (int wait = 0; wait < 1000 && !one.held.lost(); ++wait) {
            std::this_thread::sleep_for(1ms);
        }
        EXPECT_TRUE(one.held.lost());
    }
    // A connection that is dead before the first byte goes out.
    client_options options;
    options.address = "pair:1";
    options.dialer = [](const std::string&, const std::stop_token&) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
        ::close(ends[1]);
        return ends[0];
    };
    client subject{std::move(options)};
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 1s, {}, reported));
    EXPECT_EQ(reported, errc::connection_closed);
}

TEST(c14_sigpipe, descriptors_are_close_on_exec) {
    scripted_server server;
    const granted one{server};
    EXPECT_EQ(::fcntl(one.held.native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

}  // namespace
}  // namespace monolock::testing
