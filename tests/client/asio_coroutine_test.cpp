// The Asio client in coroutines, and with_lock.

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <functional>

#include "asio_support.hpp"
#include "tls_support.hpp"

namespace monolock::testing {
namespace {

using monolock::asio::with_lock;

net::awaitable<void> sleep_for(std::chrono::milliseconds time) {
    net::steady_timer timer{co_await net::this_coro::executor, time};
    co_await timer.async_wait(net::use_awaitable);
}

struct import_failed : std::runtime_error {
    import_failed() : std::runtime_error{"import failed"} {}
};

// with_lock on a context of its own, played by the test: what it threw, as a code.
class guarded : public ::testing::Test {
protected:
    using work = std::function<net::awaitable<void>(const asio_lock&)>;

    void start(work what, milliseconds lease = 10s, acquire_manner how = {}) {
        call = net::co_spawn(context.io,
                             with_lock(asio_client{context.io, options_for(server.address())}, "n",
                                       lease, how, std::move(what)),
                             net::bind_cancellation_slot(signal.slot(), net::use_future));
        connection = server.accept();
        connection->expect_acquire("n", lease);
    }
    void cancel() {
        net::post(context.io, [this] { signal.emit(net::cancellation_type::terminal); });
    }
    // Throws what it threw, once no other thread has a share of the exception (ThreadSanitizer does
    // not see the counting of those).
    void finish() {
        call.wait();
        context.join();
        call.get();
    }
    [[nodiscard]] std::error_code outcome() {
        try {
            finish();
        } catch (const std::system_error& failed) {
            return failed.code();
        } catch (const boost::system::system_error& cancelled) {
            return cancelled.code();
        }
        return {};
    }

    scripted_server server;
    net::cancellation_signal signal;
    running_context context;
    std::future<void> call;
    std::optional<peer> connection;
    std::atomic<bool> ran{false};
};

TEST_F(guarded, work_runs_with_the_token_and_the_lock_is_given_back) {
    std::uint64_t seen = 0;
    start([&](const asio_lock& held) -> net::awaitable<void> {
        seen = held.token();
        co_await sleep_for(10ms);
        ran = true;
    });
    connection->send(waiting_frame);
    connection->send(acquired_frame(7));
    EXPECT_FALSE(outcome());
    EXPECT_EQ(seen, 7U);
    EXPECT_TRUE(ran);
    EXPECT_TRUE(connection->ends_within(soon));
}

TEST_F(guarded, work_is_cancelled_when_the_lock_is_lost) {
    start([&](const asio_lock& held) -> net::awaitable<void> {
        try {
            co_await sleep_for(10min);
        } catch (const boost::system::system_error& cancelled) {
            ran = held.lost();
            throw;
        }
    });
    connection->send(acquired_frame(7));
    EXPECT_TRUE(connection->quiet_for(20ms));
    connection->send(error_frame(2, "by hand"));
    try {
        finish();
        FAIL() << "the loss was not reported";
    } catch (const server_error& lost) {
        EXPECT_EQ(lost.code(), errc::closed_by_administrator);
        EXPECT_STREQ(lost.reason(), "by hand");
        EXPECT_EQ(lost.at(), stage::held);
        EXPECT_NO_THROW(std::rethrow_if_nested(lost));
    }
    EXPECT_TRUE(ran);
}

TEST_F(guarded, work_that_succeeded_under_a_lost_lock_is_reported) {
    start([&](const asio_lock& held) -> net::awaitable<void> {
        co_await net::this_coro::reset_cancellation_state(net::disable_cancellation());
        while (!held.lost()) {
            co_await sleep_for(1ms);
        }
        ran = true;
    });
    connection->send(acquired_frame(7));
    EXPECT_TRUE(connection->quiet_for(20ms));
    connection->close();
    EXPECT_EQ(outcome(), errc::connection_closed);
    EXPECT_TRUE(ran);
}

TEST_F(guarded, works_own_exception_passes_and_releases) {
    start([](const asio_lock&) -> net::awaitable<void> {
        co_await sleep_for(1ms);
        throw import_failed{};
    });
    connection->send(acquired_frame(7));
    EXPECT_THROW(finish(), import_failed);
    EXPECT_TRUE(connection->ends_within(soon));
}

TEST_F(guarded, works_own_exception_is_nested_in_the_loss) {
    start([](const asio_lock& held) -> net::awaitable<void> {
        co_await held.async_wait_for_loss(net::use_awaitable);
        throw import_failed{};
    });
    connection->send(acquired_frame(7));
    EXPECT_TRUE(connection->quiet_for(20ms));
    connection->reset();
    try {
        finish();
        FAIL() << "the loss was not reported";
    } catch (const error& lost) {
        EXPECT_EQ(lost.code(), errc::connection_closed);
        EXPECT_THROW(std::rethrow_if_nested(lost), import_failed);
    }
}

TEST_F(guarded, work_does_not_run_when_the_acquire_fails) {
    start([&](const asio_lock&) -> net::awaitable<void> {
        ran = true;
        co_return;
    });
    connection->send(error_frame(0x18, "not for you"));
    try {
        finish();
        FAIL() << "the refusal was not reported";
    } catch (const server_error& refused) {
        EXPECT_EQ(refused.wire_code(), 0x18);
        EXPECT_STREQ(refused.reason(), "not for you");
    }
    EXPECT_FALSE(ran);
}

TEST_F(guarded, work_does_not_run_when_the_caller_cancels_in_the_queue) {
    start([&](const asio_lock&) -> net::awaitable<void> {
        ran = true;
        co_return;
    });
    connection->send(waiting_frame);
    EXPECT_TRUE(connection->quiet_for(10ms));
    cancel();
    EXPECT_TRUE(connection->ends_within(soon));
    EXPECT_EQ(outcome(), std::errc::operation_canceled);
    EXPECT_FALSE(ran);
}

TEST_F(guarded, work_keeps_the_lock_after_a_cancel_until_it_has_ended) {
    std::promise<void> started;
    start(
        [&](const asio_lock&) -> net::awaitable<void> {
            started.set_value();
            try {
                co_await sleep_for(10min);
            } catch (const boost::system::system_error&) {
            }
            co_await net::this_coro::reset_cancellation_state(net::disable_cancellation());
            co_await sleep_for(400ms);
            ran = true;
        },
        200ms);
    connection->send(acquired_frame(7));
    started.get_future().wait();
    cancel();
    EXPECT_GE(connection->answer_until_eof(acquired_frame(7)), 4U);
    EXPECT_TRUE(ran) << "the lock was given back before the work was done";
    EXPECT_FALSE(outcome());
}

TEST_F(guarded, work_is_tried_again_only_before_it_ran) {
    start(
        [&](const asio_lock&) -> net::awaitable<void> {
            ran = true;
            co_await sleep_for(10min);
        },
        10s, {.retry = true});
    connection->close();
    auto second = server.accept();
    second.expect_acquire("n", 10s);
    second.send(acquired_frame(7));
    EXPECT_TRUE(second.quiet_for(20ms));
    second.close();
    EXPECT_EQ(outcome(), errc::connection_closed);
    EXPECT_TRUE(ran);
    EXPECT_FALSE(server.accept_within(20ms));
}

TEST(asio_awaitable, a_loss_is_a_result_and_a_failed_acquire_an_exception) {
    scripted_server server;
    running_context context;
    auto call = net::co_spawn(
        context.io,
        [subject = asio_client{context.io, options_for(server.address())}]()
            -> net::awaitable<std::error_code> {
            try {
                co_await subject.async_acquire("n", 10s, {.queue = false}, net::use_awaitable);
                ADD_FAILURE() << "it was owned";
            } catch (const boost::system::system_error& busy) {
                EXPECT_EQ(busy.code(), errc::busy);
            }
            const auto held = co_await subject.async_acquire("n", 10s, net::use_awaitable);
            co_return co_await held.async_wait_for_loss(net::use_awaitable);
        },
        net::use_future);
    auto owned = server.accept();
    owned.expect_acquire("n", 10s);
    owned.send(waiting_frame);
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_TRUE(connection.quiet_for(20ms));
    connection.send(error_frame(1, "bye"));
    EXPECT_EQ(call.get(), errc::server_shutting_down);
}

// A parallel group sends terminal cancellation to the wait that came second.
TEST(asio_awaitable, a_lock_outlives_a_race_against_its_loss) {
    using net::experimental::awaitable_operators::operator||;
    scripted_server server;
    running_context context;
    auto call = net::co_spawn(
        context.io,
        [subject =
             asio_client{context.io, options_for(server.address())}]() -> net::awaitable<bool> {
            const auto held = co_await subject.async_acquire("n", 10s, net::use_awaitable);
            for (int step = 0; step < 3; ++step) {
                const auto first =
                    co_await (sleep_for(1ms) || held.async_wait_for_loss(net::use_awaitable));
                EXPECT_EQ(first.index(), 0U);
            }
            co_return held && !held.lost();
        },
        net::use_future);
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_TRUE(call.get());
    EXPECT_TRUE(connection.ends_within(soon)) << "the coroutine had the lock";
}

class asio_over_tls : public over_tls {};

TEST_P(asio_over_tls, acquires_beats_and_says_goodbye) {
    running_context context;
    const asio_client subject{context.io, options_with(trusting())};
    auto call = subject.async_acquire("n", 1200ms, net::use_future);
    auto connection = accept();
    connection.expect_acquire("n", 1200ms);
    connection.send(waiting_frame);
    connection.send(acquired_frame(7));
    auto held = call.get();
    for (int beat = 0; beat < 5; ++beat) {
        connection.expect(heartbeat_byte);
        connection.send(acquired_frame(7));
    }
    EXPECT_FALSE(held.lost());
    held.release();
    EXPECT_TRUE(connection.ends_within(soon));
    EXPECT_TRUE(connection.heard_close_notify());
}

TEST_P(asio_over_tls, says_whom_it_does_not_trust) {
    const test::certificate_authority stranger;
    running_context context;
    const asio_client subject{
        context.io, options_with({.ca_file = folder.write("o.pem", stranger.certificate())})};
    auto call =
        net::co_spawn(context.io,
                      with_lock(subject, "n", 10s, {.retry = true},
                                [](const asio_lock&) -> net::awaitable<void> { co_return; }),
                      net::use_future);
    static_cast<void>(server.accept().secure(side));
    call.wait();
    context.join();
    try {
        call.get();
        FAIL() << "it was trusted";
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::server_not_trusted);
        EXPECT_STRNE(refused.detail(), "");
    }
}

INSTANTIATE_TEST_SUITE_P(versions, asio_over_tls, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         version_name);

}  // namespace
}  // namespace monolock::testing
