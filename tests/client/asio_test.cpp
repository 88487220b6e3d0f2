// The operations of the Asio client, by callbacks and futures; coroutines are in
// asio_coroutine_test.cpp.

#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>

#include "asio_support.hpp"
#include "honest_server.hpp"

namespace monolock::testing {
namespace {

using boost::system::error_code;

// A client with a granted lock, and the server's end of it.
struct granted {
    granted(net::io_context& io, scripted_server& server, milliseconds lease = 10s)
        : subject{io, options_for(server.address())} {
        auto call = subject.async_acquire("n", lease, net::use_future);
        connection = server.accept();
        connection->expect_acquire("n", lease);
        connection->send(acquired_frame(7));
        held = call.get();
    }

    asio_client subject;
    std::optional<peer> connection;
    asio_lock held;
};

// What an operation comes to, as a future that throws nothing.

struct acquired {
    error_code code;
    asio_lock held;
};

[[nodiscard]] std::future<acquired> acquire(const asio_client& by, const acquire_manner& how = {},
                                            milliseconds lease = 10s,
                                            net::cancellation_slot slot = {}) {
    auto told = std::make_shared<std::promise<acquired>>();
    by.async_acquire("n", lease, how,
                     net::bind_cancellation_slot(slot, [told](error_code code, asio_lock held) {
                         told->set_value({.code = code, .held = std::move(held)});
                     }));
    return told->get_future();
}

struct ended {
    error_code code;
    std::error_code loss;
};

[[nodiscard]] std::future<ended> wait_for_loss(const asio_lock& of,
                                               net::cancellation_slot slot = {}) {
    auto told = std::make_shared<std::promise<ended>>();
    of.async_wait_for_loss(
        net::bind_cancellation_slot(slot, [told](error_code code, std::error_code loss) {
            told->set_value({.code = code, .loss = loss});
        }));
    return told->get_future();
}

template <class Result>
void expect_pending(const std::future<Result>& what) {
    EXPECT_EQ(what.wait_for(20ms), std::future_status::timeout);
}

TEST(asio_acquire, beats_without_the_applications_help_until_it_is_released) {
    scripted_server server;
    running_context context;
    granted one{context.io, server, 800ms};
    EXPECT_TRUE(one.held);
    EXPECT_EQ(one.held.token(), 7U);
    EXPECT_GE(one.held.native_handle(), 0);
    EXPECT_EQ(one.held.failure(), nullptr);
    for (int beat = 0; beat < 12; ++beat) {  // three leases
        one.connection->expect(heartbeat_byte);
        one.connection->send(acquired_frame(7));
    }
    EXPECT_FALSE(one.held.lost());
    EXPECT_GT(one.held.confirmed_until(), boot_clock::now());
    one.held.release();
    EXPECT_FALSE(one.held);
    EXPECT_EQ(one.connection->answer_until_eof(""), 0U);
    std::error_code again;
    one.held.release(again);
    EXPECT_EQ(again, errc::no_claim);
}

TEST(asio_acquire, is_promoted_from_the_queue) {
    scripted_server server;
    running_context context;
    const asio_client subject{context.io, options_for(server.address())};
    auto call = subject.async_acquire("n", 1200ms, net::use_future);
    auto connection = server.accept();
    connection.expect_acquire("n", 1200ms);
    connection.send(waiting_frame);
    for (int beat = 0; beat < 5; ++beat) {
        connection.expect(heartbeat_byte);
        connection.send(waiting_frame);
    }
    expect_pending(call);
    connection.send(acquired_frame(8));
    EXPECT_EQ(call.get().token(), 8U);
}

TEST(asio_acquire, calls_its_handler_once_on_its_executor_and_never_inside_the_call) {
    net::io_context io;
    net::thread_pool elsewhere{1};
    const asio_client subject{io, options_for("127.0.0.1:1")};
    std::atomic<int> calls{0};
    subject.async_acquire("", 10s, [&](error_code code, const asio_lock& none) {
        EXPECT_EQ(code, errc::empty_name);
        EXPECT_FALSE(none);
        ++calls;
    });
    subject.async_acquire("n", 10s,
                          net::bind_executor(elsewhere, [&](error_code code, const asio_lock&) {
                              EXPECT_EQ(code, net::error::connection_refused);
                              EXPECT_TRUE(elsewhere.get_executor().running_in_this_thread());
                              ++calls;
                          }));
    EXPECT_EQ(calls, 0);
    io.run();
    elsewhere.join();
    EXPECT_EQ(calls, 2);
}

TEST(asio_acquire, keeps_the_kind_of_an_error_and_what_is_known_of_it) {
    scripted_server server;
    running_context context;
    const asio_client subject{context.io, options_for(server.address())};
    auto call = acquire(subject);
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(error_frame(0x18, "not for you"));
    const auto denied = call.get();
    EXPECT_EQ(denied.code, errc::not_authorized);
    EXPECT_TRUE(denied.code == condition::denied);
    EXPECT_FALSE(denied.code == condition::retryable);
    ASSERT_NE(denied.held.failure(), nullptr);
    EXPECT_STREQ(denied.held.failure()->detail(), "not for you");
    EXPECT_EQ(denied.held.failure()->at(), stage::requesting);

    auto busy = acquire(subject, {.queue = false});
    auto owned = server.accept();
    owned.expect_acquire("n", 10s);
    owned.send(waiting_frame);
    EXPECT_EQ(busy.get().code, errc::busy);
    EXPECT_TRUE(owned.ends_within(soon));

    auto bounded = acquire(subject, {.wait = 50ms});
    auto queue = server.accept();
    queue.expect_acquire("n", 10s);
    queue.send(waiting_frame);
    EXPECT_EQ(bounded.get().code, errc::wait_expired);

    auto silent = acquire(subject, {}, 200ms);
    auto mute = server.accept();
    const auto doubtful = silent.get();
    EXPECT_EQ(doubtful.code, errc::acquire_timeout);
    EXPECT_TRUE(doubtful.code == std::errc::timed_out);
    EXPECT_TRUE(doubtful.code == condition::in_doubt);
    EXPECT_THROW((asio_client{context.io, options_for("nonsense")}), error);
}

TEST(asio_acquire, finds_the_active_server_and_tries_again) {
    scripted_server standby{scripted_server::state::closed};
    scripted_server active;
    running_context context;
    const asio_client subject{context.io, options_for(standby.address() + "," + active.address())};
    auto call = subject.async_acquire("n", 10s, {.retry = true}, net::use_future);
    active.accept().close();
    auto connection = active.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(call.get().token(), 7U);
}

TEST(asio_acquire, a_grant_that_aged_before_its_handler_ran_is_none) {
    scripted_server server;
    running_context context;
    net::strand<net::io_context::executor_type> busy{context.io.get_executor()};
    net::thread_pool other{1};
    const asio_client subject{other, options_for(server.address())};
    std::promise<error_code> told;
    std::promise<void> blocked;
    net::post(busy, [&] { blocked.get_future().wait(); });
    subject.async_acquire("n", 200ms,
                          net::bind_executor(busy, [&](error_code code, const asio_lock& none) {
                              EXPECT_FALSE(none);
                              told.set_value(code);
                          }));
    auto connection = server.accept();
    connection.expect_acquire("n", 200ms);
    connection.send(acquired_frame(7));
    std::this_thread::sleep_for(200ms);
    blocked.set_value();
    EXPECT_EQ(told.get_future().get(), errc::heartbeat_timeout);
    other.join();
}

class asio_cancel : public ::testing::TestWithParam<net::cancellation_type> {};

TEST_P(asio_cancel, leaves_the_queue_at_once) {
    scripted_server server;
    running_context context;
    const asio_client subject{context.io, options_for(server.address())};
    net::cancellation_signal signal;
    auto call = acquire(subject, {.retry = true}, 10s, signal.slot());
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame);
    expect_pending(call);
    net::post(context.io, [&] { signal.emit(GetParam()); });
    EXPECT_TRUE(connection.ends_within(soon));
    const auto result = call.get();
    EXPECT_EQ(result.code, net::error::operation_aborted);
    EXPECT_EQ(result.held.failure()->at(), stage::queued);
}

TEST_P(asio_cancel, gives_back_a_grant_whose_handler_did_not_run_yet) {
    scripted_server server;
    net::io_context io;
    const asio_client subject{io, options_for(server.address())};
    net::cancellation_signal signal;
    std::optional<error_code> told;
    subject.async_acquire(
        "n", 10s,
        net::bind_cancellation_slot(signal.slot(), [&](error_code code, const asio_lock& none) {
            EXPECT_FALSE(none);
            told = code;
        }));
    io.poll();
    auto connection = server.accept();
    io.poll();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    while (io.run_one() > 0 && connection.quiet_for(0ms)) {
        signal.emit(GetParam());  // from now on at any moment
    }
    io.run();
    EXPECT_EQ(told, net::error::operation_aborted);
    EXPECT_TRUE(connection.ends_within(soon));
}

TEST_P(asio_cancel, of_a_wait_for_the_loss_leaves_the_lock_as_it_is) {
    scripted_server server;
    running_context context;
    granted one{context.io, server};
    net::cancellation_signal signal;
    auto wait = wait_for_loss(one.held, signal.slot());
    auto other = wait_for_loss(one.held);
    expect_pending(wait);
    net::post(context.io, [&] { signal.emit(GetParam()); });
    EXPECT_EQ(wait.get().code, net::error::operation_aborted);
    expect_pending(other);
    EXPECT_FALSE(one.held.lost());
    EXPECT_TRUE(one.connection->quiet_for(10ms));
}

INSTANTIATE_TEST_SUITE_P(types, asio_cancel,
                         ::testing::Values(net::cancellation_type::terminal,
                                           net::cancellation_type::partial,
                                           net::cancellation_type::total));

TEST(asio_loss, is_told_to_everybody_who_waits_and_to_who_comes_later) {
    scripted_server server;
    running_context context;
    granted one{context.io, server};
    auto first = one.held.async_wait_for_loss(net::use_future);
    auto second = one.held.async_wait_for_loss(net::use_future);
    const auto stop = one.held.loss_token();
    expect_pending(first);
    one.connection->send(error_frame(2, "by hand"));
    EXPECT_EQ(first.get(), errc::closed_by_administrator);
    EXPECT_EQ(second.get(), errc::closed_by_administrator);
    EXPECT_EQ(one.held.async_wait_for_loss(net::use_future).get(), errc::closed_by_administrator);
    EXPECT_TRUE(stop.stop_requested());
    EXPECT_TRUE(one.held.lost());
    EXPECT_EQ(one.held.loss(), errc::closed_by_administrator);
    try {
        one.held.release();
        ADD_FAILURE() << "the loss was not reported";
    } catch (const server_error& lost) {
        EXPECT_STREQ(lost.reason(), "by hand");
        EXPECT_EQ(lost.at(), stage::held);
    }
}

TEST(asio_loss, comes_at_the_deadline_when_the_server_falls_silent) {
    expect_timely([]() -> std::string {
        scripted_server server;
        running_context context;
        const granted one{context.io, server, 1s};
        const auto until = one.held.confirmed_until();
        const auto why = one.held.async_wait_for_loss(net::use_future).get();
        const auto late = boot_clock::now() - until;
        if (why != errc::heartbeat_timeout) {
            return "reported " + why.message();
        }
        return late < 0ms || late > prompt ? "off by " + milliseconds_text(late) : std::string{};
    });
}

TEST(asio_loss, does_not_come_when_the_lock_is_released_or_destroyed) {
    scripted_server server;
    running_context context;
    granted one{context.io, server};
    granted two{context.io, server};
    auto released = wait_for_loss(one.held);
    auto destroyed = wait_for_loss(two.held);
    one.held.release();
    two.held = {};
    EXPECT_EQ(released.get().code, net::error::operation_aborted);
    EXPECT_EQ(destroyed.get().code, net::error::operation_aborted);
    EXPECT_EQ(wait_for_loss(two.held).get().code, errc::no_claim);
    EXPECT_EQ(wait_for_loss(asio_lock{}).get().code, errc::no_claim);
}

// The context's only thread stands still for longer than the claim may believe.
TEST(asio_loss, of_a_blocked_context_is_seen_at_once_and_told_when_it_runs_again) {
    scripted_server server;
    running_context context;
    granted one{context.io, server, 200ms};
    auto told = one.held.async_wait_for_loss(net::use_future);
    std::promise<bool> seen;
    net::post(context.io, [&] {
        const auto stop = one.held.loss_token();
        std::this_thread::sleep_until(std::chrono::steady_clock::now() + 200ms);
        const bool was_quiet = !stop.stop_requested();  // there was nobody to request it
        seen.set_value(was_quiet && one.held.lost() && stop.stop_requested());
        EXPECT_EQ(told.wait_for(0ms), std::future_status::timeout);
    });
    EXPECT_TRUE(seen.get_future().get());
    EXPECT_EQ(told.get(), errc::heartbeat_timeout);
}

TEST(asio_context, has_work_while_a_lock_is_held_and_none_afterwards) {
    scripted_server server;
    running_context context;
    auto one = std::make_optional<granted>(context.io, server);
    auto two = std::make_optional<granted>(context.io, server);
    std::atomic<bool> ended{false};
    std::thread ends{[&] {
        context.join();
        ended = true;
    }};
    one->held.release();
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(ended);
    two->connection->close();  // lost
    ends.join();
    EXPECT_TRUE(two->held.lost());
}

TEST(asio_context, comes_back_to_a_client_that_was_idle) {
    scripted_server server;
    net::io_context io;
    const asio_client subject{io, options_for(server.address())};
    for (int round = 0; round < 3; ++round) {
        io.restart();
        error_code told;
        subject.async_acquire("n", 10s, {.wait = 20ms},
                              [&](error_code code, const asio_lock&) { told = code; });
        io.run();
        EXPECT_EQ(told, errc::wait_expired);
    }
}

TEST(asio_context, may_end_with_everything_under_way) {
    scripted_server server;
    std::optional<peer> held;
    std::optional<peer> queued;
    {
        running_context context;
        granted one{context.io, server};
        held = std::move(one.connection);
        one.subject.async_acquire("m", 10s, [](error_code, const asio_lock&) { FAIL(); });
        const auto kept = std::make_shared<asio_lock>(std::move(one.held));
        kept->async_wait_for_loss([kept](error_code, std::error_code) { FAIL(); });
        queued = server.accept();
        queued->expect_acquire("m", 10s);
    }
    EXPECT_TRUE(queued->ends_within(soon));
    EXPECT_TRUE(held->ends_within(soon));
}

TEST(asio_context, may_be_a_strand_or_a_pool) {
    scripted_server server;
    net::thread_pool pool{2};
    const auto by = [&](const net::any_io_executor& on) {
        const asio_client subject{on, options_for(server.address())};
        auto call = subject.async_acquire("n", 10s, net::use_future);
        auto connection = server.accept();
        connection.expect_acquire("n", 10s);
        connection.send(acquired_frame(7));
        return call.get().token();
    };
    EXPECT_EQ(by(pool.get_executor()), 7U);
    EXPECT_EQ(by(net::make_strand(pool)), 7U);
    pool.join();
}

// One turn of a name: acquire, hold for a moment, release; again, until there were enough.
struct turn : std::enable_shared_from_this<turn> {
    turn(asio_client who, std::string what, int how_often)
        : by{std::move(who)}, name{std::move(what)}, rounds{how_often} {}

    void next() {
        if (rounds-- > 0) {
            by.async_acquire(
                name, 2s, [self = shared_from_this()](error_code code, asio_lock held) {
                    EXPECT_FALSE(code) << code.message();
                    if (self->rounds % 3 == 0) {
                        held.async_wait_for_loss([](error_code released, std::error_code) {
                            EXPECT_EQ(released, net::error::operation_aborted);
                        });
                    }
                    held = {};
                    self->next();
                });
        }
    }

    asio_client by;
    std::string name;
    int rounds;
};

TEST(asio_context, with_many_threads_and_many_claims) {
    honest_server server;
    running_context context{4};
    const asio_client subject{context.io, options_for(server.address())};
    for (int each = 0; each < 40; ++each) {
        std::make_shared<turn>(subject, "lock " + std::to_string(each % 10), 20)->next();
    }
    context.join();
    EXPECT_EQ(server.grants(), 800U);
    EXPECT_EQ(server.strange_bytes(), 0U);
}

TEST(asio_context, in_a_forked_child_reports_that_the_lock_is_the_parents) {
    scripted_server server;
    running_context context;
    granted one{context.io, server, 1200ms};
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ::_exit(one.held.lost() && one.held.loss() == errc::other_process ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (int beat = 0; beat < 4; ++beat) {
        one.connection->expect(heartbeat_byte);
        one.connection->send(acquired_frame(7));
    }
    EXPECT_FALSE(one.held.lost());
}

}  // namespace
}  // namespace monolock::testing
