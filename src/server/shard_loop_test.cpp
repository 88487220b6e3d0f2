#include "server/shard_loop.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

core::time_point now() {
    return std::chrono::steady_clock::now();
}

// A loop in a thread of its own, until the end of the test.
class running_loop {
public:
    running_loop() : thread_{[this] { loop.run(); }} {}
    running_loop(const running_loop&) = delete;
    running_loop& operator=(const running_loop&) = delete;
    ~running_loop() {
        loop.stop();
        thread_.join();
    }

    // Runs on the loop's thread; returns when it is done.
    template <class Work>
    void do_there(Work work) {
        std::promise<void> done;
        loop.post([&] {
            work();
            done.set_value();
        });
        done.get_future().get();
    }

    shard_loop loop;

private:
    std::thread thread_;
};

TEST(shard_loop_test, work_from_another_thread_wakes_it_and_keeps_its_order) {
    running_loop there;
    std::vector<int> order;
    for (int number = 0; number < 1000; ++number) {
        there.loop.post([&order, number] { order.push_back(number); });
    }
    there.do_there([] {});
    ASSERT_EQ(order.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(shard_loop_test, work_that_can_only_be_moved) {
    running_loop there;
    std::promise<int> got;
    there.loop.post([&got, value = std::make_unique<int>(7)] { got.set_value(*value); });
    EXPECT_EQ(got.get_future().get(), 7);
}

// Posted by the loop's own thread: called in the next turn, never within the call, and what is
// ready meanwhile comes between.
TEST(shard_loop_test, its_own_work_waits_for_the_next_turn) {
    shard_loop loop;
    std::string order;
    loop.post([&] {
        order += 'a';
        loop.post([&] { order += 'c'; });
        order += 'b';
    });
    loop.poll();
    EXPECT_EQ(order, "ab");
    loop.poll();
    EXPECT_EQ(order, "abc");
}

TEST(shard_loop_test, a_loop_that_sleeps_is_stopped) {
    std::optional<running_loop> there{std::in_place};
    there->do_there([] {});
    there.reset();
}

TEST(shard_loop_test, a_loop_that_was_stopped_before_does_not_run) {
    shard_loop loop;
    bool called = false;
    loop.stop();
    loop.post([&] { called = true; });
    loop.run();
    EXPECT_FALSE(called);
}

// Whoever stops a loop goes on without it, although it may be in the middle of a turn.
TEST(shard_loop_test, nothing_is_called_once_it_is_stopped) {
    shard_loop loop;
    std::string order;
    shard_loop::timer passed{loop, [&] { order += 't'; }};
    loop.post([&] {
        order += 'a';
        loop.post([&] { order += 'c'; });
        passed.arm(now() - 1s);
        loop.stop();
    });
    loop.post([&] { order += 'b'; });
    for (int turn = 0; turn < 3; ++turn) {
        loop.poll();
    }
    EXPECT_EQ(order, "a");
}

TEST(shard_loop_test, the_end_of_each_turn_is_told_to_whoever_asks) {
    shard_loop loop;
    std::string order;
    shard_loop::turn_end often{loop, [&] { order += 'o'; }};
    std::optional<shard_loop::turn_end> once;
    once.emplace(loop, [&] {
        order += '1';
        once->disarm();
    });
    loop.poll();
    EXPECT_EQ(order, "");
    loop.post([&] {
        often.arm();
        once->arm();
        often.arm();  // as good as once
        order += 'a';
    });
    loop.poll();
    EXPECT_EQ(order, "a1o");
    loop.poll();
    EXPECT_EQ(order, "a1oo");
    once->arm();
    once.reset();
    often.disarm();
    loop.poll();
    EXPECT_EQ(order, "a1oo");
    often.arm();
    loop.stop();
    loop.poll();
    EXPECT_EQ(order, "a1oo");
}

TEST(shard_loop_test, what_was_posted_and_never_called_is_destroyed) {
    const auto held = std::make_shared<int>(1);
    {
        shard_loop loop;
        loop.post([held] {});
        EXPECT_EQ(held.use_count(), 2);
    }
    EXPECT_EQ(held.use_count(), 1);
}

TEST(shard_loop_test, timers_pass_in_the_order_of_their_times_and_never_early) {
    running_loop there;
    const core::time_point start = now();
    std::string order;
    std::promise<void> last;
    core::time_point passed_at;
    shard_loop::timer late{there.loop, [&] {
                               passed_at = now();
                               order += 'l';
                               last.set_value();
                           }};
    shard_loop::timer soon{there.loop, [&] { order += 's'; }};
    there.do_there([&] {
        late.arm(start + 20ms);
        soon.arm(start + 10ms);
    });
    last.get_future().get();
    EXPECT_EQ(order, "sl");
    EXPECT_GE(passed_at, start + 20ms);
    EXPECT_FALSE(late.is_armed());
}

TEST(shard_loop_test, a_timer_that_is_disarmed_or_armed_anew_forgets_its_time) {
    running_loop there;
    const core::time_point start = now();
    std::string order;
    std::promise<void> last;
    shard_loop::timer never{there.loop, [&] { order += 'n'; }};
    shard_loop::timer moved{there.loop, [&] {
                                order += 'm';
                                last.set_value();
                            }};
    shard_loop::timer other{there.loop, [&] { order += 'o'; }};
    there.do_there([&] {
        never.arm(start + 1ms);
        moved.arm(start + 1ms);
        other.arm(start + 5ms);
        never.disarm();
        moved.arm(start + 15ms);
    });
    last.get_future().get();
    EXPECT_EQ(order, "om");
}

TEST(shard_loop_test, a_timer_that_arms_itself_for_the_past_lets_others_have_their_turn) {
    running_loop there;
    std::promise<void> done;
    int passed = 0;
    std::optional<shard_loop::timer> again;
    again.emplace(there.loop, [&] {
        if (++passed < 3) {
            again->arm(now() - 1s);
        } else {
            done.set_value();
        }
    });
    there.do_there([&] { again->arm(now() - 1s); });
    done.get_future().get();
    EXPECT_EQ(passed, 3);
}

TEST(shard_loop_test, a_handler_may_disarm_a_timer_whose_time_has_passed_too) {
    shard_loop loop;
    int passed = 0;
    std::optional<shard_loop::timer> one;
    std::optional<shard_loop::timer> two;
    one.emplace(loop, [&] {
        ++passed;
        two.reset();
    });
    two.emplace(loop, [&] {
        ++passed;
        one.reset();
    });
    const core::time_point past = now() - 1s;
    one->arm(past);
    two->arm(past);
    for (int turn = 0; turn < 5; ++turn) {
        loop.poll();
    }
    EXPECT_EQ(passed, 1);
}

// --- listening sockets

posix::descriptor listening_socket(sockaddr_in& at) {
    posix::descriptor made{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const generic = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(::bind(made.get(), generic, size), 0);
    EXPECT_EQ(::listen(made.get(), 16), 0);
    EXPECT_EQ(::getsockname(made.get(), generic, &size), 0);
    return made;
}

posix::descriptor connect_to(const sockaddr_in& at) {
    posix::descriptor made{::socket(AF_INET, SOCK_STREAM, 0)};
    EXPECT_EQ(::connect(made.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return made;
}

struct accepting final : readiness_handler {
    explicit accepting(int from) : listening{from} {}
    void on_readable() override {
        ++readable;
        taken.emplace_back(::accept(listening, nullptr, nullptr));
    }
    void on_writable() override {}
    int listening;
    int readable = 0;
    std::vector<posix::descriptor> taken;
};

TEST(shard_loop_test, a_listening_socket_calls_as_long_as_somebody_waits_to_be_accepted) {
    readiness_set connections;
    sockaddr_in at{};
    const posix::descriptor listening = listening_socket(at);
    const boost::intrusive_ptr<accepting> taker{new accepting{listening.get()}};
    auto watch = connections.add_listening(listening.get(), *taker);
    ASSERT_TRUE(watch);
    std::vector<posix::descriptor> clients;
    for (int number = 0; number < 3; ++number) {
        clients.push_back(connect_to(at));
    }
    for (int turn = 0; turn < 10; ++turn) {
        connections.turn(false);
    }
    EXPECT_EQ(taker->readable, 3);

    watch->let_go();
    watch.reset();
    clients.push_back(connect_to(at));
    connections.turn(false);
    EXPECT_EQ(taker->readable, 3) << "nobody is called once the watch is given back";

    watch = connections.add_listening(listening.get(), *taker);
    connections.turn(false);
    EXPECT_EQ(taker->readable, 4) << "what came meanwhile is there";
    watch->let_go();
    watch.reset();
    connections.turn(false);
}

}  // namespace
}  // namespace monolock::server
