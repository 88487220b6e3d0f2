// The client without a thread: the application's loop drives it, here one over poll(2).

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "monolock/driven.hpp"
#include "support.hpp"

namespace monolock::testing {
namespace {

// Drives one client, and plays no server: whoever waits for something pumps until it is there.
class loop {
public:
    explicit loop(client_options options) : client_{std::move(options)} {}
    explicit loop(const std::string& address) : loop{options_for(address)} {}

    [[nodiscard]] driven_client& client() noexcept { return client_; }

    [[nodiscard]] acquisition acquire(std::string_view name, milliseconds lease,
                                      const acquire_manner& how = {}) {
        return client_.acquire(name, lease, how, [this] { ++told; });
    }

    // One look at the descriptor; how often it was readable.
    int turn(milliseconds at_most) {
        pollfd watched{.fd = client_.native_handle(), .events = POLLIN, .revents = 0};
        const int ready = ::poll(&watched, 1, static_cast<int>(at_most.count()));
        if (ready > 0) {
            EXPECT_TRUE(client_.poll());
        }
        return ready;
    }

    template <class Condition>
    void until(const Condition& met) {
        const auto deadline = boot_clock::now() + patience;
        while (!met()) {
            ASSERT_LT(boot_clock::now(), deadline) << "it did not come in time";
            turn(5ms);
        }
    }

    // The next connection, with its ACQUIRE read: the client sends it only if it is driven.
    [[nodiscard]] peer accept(scripted_server& server, std::string_view name, milliseconds lease) {
        std::optional<peer> next;
        until([&] { return (next = server.accept_within(0ms)).has_value(); });
        until_heard(next.value());
        next->expect_acquire(name, lease);
        return *std::move(next);
    }

    void until_heard(const peer& by) {
        pollfd arriving{.fd = by.descriptor(), .events = POLLIN, .revents = 0};
        until([&] { return ::poll(&arriving, 1, 0) > 0; });
    }

    [[nodiscard]] acquisition::result result_of(acquisition& asked) {
        std::optional<acquisition::result> got;
        until([&] { return (got = asked.take()).has_value(); });
        return got ? *std::move(got) : acquisition::result{};
    }

    std::atomic<int> told{0};

private:
    static client_options options_for(const std::string& address) {
        client_options options;
        options.address = address;
        return options;
    }

    driven_client client_;
};

[[nodiscard]] std::error_code code_of_result(const acquisition::result& result) {
    return result.failure ? result.failure->code() : std::error_code{};
}

[[nodiscard]] std::size_t threads() {
    const std::filesystem::directory_iterator all{"/proc/self/task"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(driven, acquires_beats_and_releases_without_a_thread_of_its_own) {
    scripted_server server;
    loop subject{server.address()};
    std::thread{[] {}}.join();  // ThreadSanitizer adds one of its own to the first
    const auto before = threads();
    auto asked = subject.acquire("n", 1200ms);
    auto connection = subject.accept(server, "n", 1200ms);
    EXPECT_EQ(threads(), before);
    EXPECT_EQ(subject.told, 0);
    connection.send(acquired_frame(7));
    auto result = subject.result_of(asked);
    EXPECT_EQ(subject.told, 1);
    ASSERT_FALSE(result.failure);
    EXPECT_EQ(result.held.token(), 7U);
    EXPECT_FALSE(asked.take()) << "a result is taken once";
    for (int beat = 0; beat < 6; ++beat) {
        subject.until_heard(connection);
        connection.expect(heartbeat_byte);
        connection.send(acquired_frame(7));
        EXPECT_FALSE(result.held.lost());
    }
    result.held.release();
    EXPECT_TRUE(connection.ends_within(soon));
}

TEST(driven, the_descriptor_is_quiet_while_there_is_nothing_to_do) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 4s);
    auto connection = subject.accept(server, "n", 4s);
    connection.send(waiting_frame);
    subject.turn(patience);
    EXPECT_EQ(subject.turn(100ms), 0);
    connection.send(acquired_frame(8));
    EXPECT_EQ(subject.result_of(asked).held.token(), 8U);
}

TEST(driven, wrong_input_is_told_before_anything_is_sent) {
    scripted_server server;
    loop subject{server.address()};
    auto empty = subject.acquire("", 10s);
    EXPECT_EQ(subject.told, 1);
    EXPECT_EQ(code_of_result(*empty.take()), errc::empty_name);
    auto brief = subject.acquire("n", 0ms);
    EXPECT_EQ(code_of_result(*brief.take()), errc::lease_out_of_range);
    auto late = subject.acquire("n", 10s, {.wait = 0ns});
    EXPECT_EQ(code_of_result(*late.take()), errc::wait_expired);
    EXPECT_FALSE(server.accept_within(20ms));
    EXPECT_THROW(loop{"nonsense"}, error);
}

TEST(driven, nobody_need_be_told) {
    scripted_server server;
    loop subject{server.address()};
    auto wrong = subject.client().acquire("", 10s, {}, {});
    EXPECT_EQ(code_of_result(*wrong.take()), errc::empty_name);
    auto asked = subject.client().acquire("n", 10s, {}, {});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(acquired_frame(7));
    auto result = subject.result_of(asked);
    EXPECT_EQ(result.held.token(), 7U);
    result.held.on_loss({});
    connection.close();
    subject.until([&] { return result.held.lost(); });
}

TEST(driven, an_owned_lock_is_busy_for_who_does_not_queue) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.queue = false});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(waiting_frame);
    EXPECT_EQ(code_of_result(subject.result_of(asked)), errc::busy);
    EXPECT_TRUE(connection.ends_within(soon));
}

TEST(driven, a_wait_ends) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.wait = 100ms});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(waiting_frame);
    EXPECT_EQ(code_of_result(subject.result_of(asked)), errc::wait_expired);
    EXPECT_TRUE(connection.ends_within(soon));
}

TEST(driven, a_refusal_keeps_its_code_and_its_reason) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.retry = true});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(error_frame(0x18, "not for you"));
    const auto result = subject.result_of(asked);
    EXPECT_EQ(code_of_result(result), errc::not_authorized);
    EXPECT_EQ(code_of_result(result), condition::denied);
    EXPECT_STREQ(result.failure->detail(), "not for you");
    EXPECT_EQ(result.failure->at(), stage::requesting);
    EXPECT_FALSE(server.accept_within(20ms));
}

TEST(driven, a_refused_connection_keeps_the_systems_code) {
    scripted_server server{scripted_server::state::closed};
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s);
    EXPECT_EQ(code_of_result(subject.result_of(asked)), std::errc::connection_refused);
}

TEST(driven, cancelling_leaves_the_queue_at_once) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.retry = true});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(waiting_frame);
    subject.turn(patience);
    EXPECT_EQ(subject.told, 0);
    asked.cancel();
    EXPECT_EQ(subject.told, 1);
    EXPECT_TRUE(connection.ends_within(soon));
    const auto result = asked.take();
    EXPECT_EQ(code_of_result(*result), errc::stopped);
    EXPECT_EQ(result->failure->at(), stage::queued);
}

TEST(driven, destroying_leaves_the_queue_and_tells_nobody) {
    scripted_server server;
    loop subject{server.address()};
    std::optional asked{subject.acquire("n", 10s)};
    auto connection = subject.accept(server, "n", 10s);
    asked.reset();
    EXPECT_TRUE(connection.ends_within(soon));
    EXPECT_EQ(subject.told, 0);
}

TEST(driven, a_grant_that_nobody_took_is_given_back) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.retry = true});
    auto connection = subject.accept(server, "n", 10s);
    connection.send(acquired_frame(7));
    subject.until([&] { return subject.told == 1; });
    asked.cancel();
    EXPECT_TRUE(connection.ends_within(soon));
    EXPECT_EQ(code_of_result(*asked.take()), errc::stopped);
    EXPECT_EQ(subject.told, 1);
}

TEST(driven, a_grant_that_aged_before_it_was_taken_is_none) {
    scripted_server server;
    loop subject{server.address()};
    auto once = subject.acquire("n", 200ms);
    auto again = subject.acquire("m", 200ms, {.retry = true});
    auto first = subject.accept(server, "n", 200ms);
    auto second = subject.accept(server, "m", 200ms);
    first.send(acquired_frame(7));
    second.send(acquired_frame(8));
    subject.until([&] { return subject.told == 2; });
    std::this_thread::sleep_for(200ms);  // nobody takes them, and nobody drives them
    EXPECT_EQ(code_of_result(*once.take()), errc::heartbeat_timeout);
    EXPECT_FALSE(again.take()) << "it tries again";
    auto third = subject.accept(server, "m", 200ms);
    third.send(acquired_frame(9));
    EXPECT_EQ(subject.result_of(again).held.token(), 9U);
}

TEST(driven, a_loop_that_stands_still_loses_its_lock_and_is_told) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 200ms);
    auto connection = subject.accept(server, "n", 200ms);
    connection.send(acquired_frame(7));
    auto result = subject.result_of(asked);
    std::error_code told;
    result.held.on_loss([&](std::error_code why) { told = why; });
    std::this_thread::sleep_for(200ms);
    EXPECT_FALSE(told) << "there was nobody to tell it";
    subject.turn(patience);
    EXPECT_EQ(told, errc::heartbeat_timeout);
    EXPECT_TRUE(result.held.loss_token().stop_requested());
    EXPECT_TRUE(result.held.lost());
}

TEST(driven, a_claim_past_its_deadline_says_so_before_the_loop_turns) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 200ms);
    auto connection = subject.accept(server, "n", 200ms);
    connection.send(acquired_frame(7));
    auto result = subject.result_of(asked);
    std::this_thread::sleep_for(200ms);
    EXPECT_TRUE(result.held.lost());
    EXPECT_EQ(result.held.loss(), errc::heartbeat_timeout);
}

TEST(driven, retries_until_a_server_grants) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s, {.retry = true});
    subject.accept(server, "n", 10s).close();
    auto leaving = subject.accept(server, "n", 10s);
    leaving.send(error_frame(1, "bye"));
    auto serving = subject.accept(server, "n", 10s);
    serving.send(acquired_frame(7));
    EXPECT_EQ(subject.result_of(asked).held.token(), 7U);
    EXPECT_EQ(subject.told, 1);
}

TEST(driven, retries_end_with_the_wait_or_by_a_cancel) {
    scripted_server closed{scripted_server::state::closed};
    loop subject{closed.address()};
    auto bounded = subject.acquire("n", 10s, {.wait = 100ms, .retry = true});
    auto endless = subject.acquire("n", 10s, {.retry = true});
    EXPECT_EQ(code_of_result(subject.result_of(bounded)), errc::wait_expired);
    endless.cancel();
    EXPECT_EQ(code_of_result(*endless.take()), errc::stopped);
}

TEST(driven, a_list_finds_the_server_that_answers) {
    scripted_server standby{scripted_server::state::closed};
    scripted_server active;
    loop subject{standby.address() + "," + active.address()};
    auto asked = subject.acquire("n", 10s);
    auto connection = subject.accept(active, "n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(subject.result_of(asked).held.token(), 7U);
}

TEST(driven, a_dialer_and_the_resolver_run_elsewhere) {
    scripted_server server;
    client_options options;
    options.address = "tunnel:7070";
    std::atomic<bool> elsewhere{false};
    options.dialer = [&, here = std::this_thread::get_id()](const std::string&, std::stop_token) {
        elsewhere = std::this_thread::get_id() != here;
        return server.connect();
    };
    loop dialing{std::move(options)};
    auto dialed = dialing.acquire("n", 10s);
    auto connection = dialing.accept(server, "n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(dialing.result_of(dialed).held.token(), 7U);
    EXPECT_TRUE(elsewhere);
    loop resolving{"localhost:" + std::to_string(server.port())};
    auto resolved = resolving.acquire("n", 10s);
    auto next = resolving.accept(server, "n", 10s);
    next.send(acquired_frame(8));
    EXPECT_EQ(resolving.result_of(resolved).held.token(), 8U);
}

TEST(driven, several_threads_may_drive_and_use_it) {
    scripted_server server;
    loop subject{server.address()};
    std::atomic<bool> done{false};
    std::vector<std::thread> drivers;
    for (int each = 0; each < 3; ++each) {
        drivers.emplace_back([&] {
            while (!done) {
                subject.turn(5ms);
            }
        });
    }
    for (std::uint64_t round = 1; round <= 50; ++round) {
        auto asked = subject.acquire("n", 10s);
        auto connection = subject.accept(server, "n", 10s);
        connection.send(waiting_frame);
        connection.send(acquired_frame(round));
        auto result = subject.result_of(asked);
        EXPECT_EQ(result.held.token(), round);
        if (round % 2 == 0) {
            connection.close();
        }
        result.held = {};
    }
    done = true;
    for (auto& driver : drivers) {
        driver.join();
    }
}

TEST(driven, a_forked_child_touches_nothing) {
    scripted_server server;
    loop subject{server.address()};
    auto asked = subject.acquire("n", 10s);
    auto waiting = subject.acquire("m", 10s);
    auto connection = subject.accept(server, "n", 10s);
    auto queued = subject.accept(server, "m", 10s);
    connection.send(acquired_frame(7));
    queued.send(waiting_frame);
    auto result = subject.result_of(asked);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool fine = !subject.client().poll() && result.held.loss() == errc::other_process;
        waiting.cancel();
        fine = fine && code_of_result(waiting.take().value()) == errc::other_process;
        auto anew = subject.acquire("n", 10s);
        fine = fine && code_of_result(anew.take().value()) == errc::other_process;
        auto untold = subject.client().acquire("n", 10s, {}, {});
        fine = fine && code_of_result(untold.take().value()) == errc::other_process;
        result.held = {};
        ::_exit(fine ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    queued.send(acquired_frame(8));
    EXPECT_EQ(subject.result_of(waiting).held.token(), 8U);
    EXPECT_FALSE(result.held.lost());
    result.held.release();
}

}  // namespace
}  // namespace monolock::testing
