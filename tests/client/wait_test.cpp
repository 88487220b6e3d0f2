// Cases C3, C4, C13, and the ways to wait.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "honest_server.hpp"
#include "support.hpp"

namespace monolock::testing {
namespace {

std::size_t entries_of(const char* directory) {
    const std::filesystem::directory_iterator all{directory};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Threads and descriptors of this process.
std::pair<std::size_t, std::size_t> resources() {
    return {entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
}

// Fifty sections hold their locks over five leases; half of them spin, half sit in a system call.
std::string spin_and_block() {
    constexpr int runs = 50;
    constexpr milliseconds lease{1000};
    honest_server server;
    auto subject = make_client(server.address());
    std::array<int, 2> gate{};
    if (::pipe2(gate.data(), O_CLOEXEC) != 0) {
        return "no pipe";
    }
    const auto until = boot_clock::now() + 5 * lease;
    std::atomic<int> kept{0};
    std::vector<std::thread> workers;
    workers.reserve(runs);
    for (int run = 0; run < runs; ++run) {
        workers.emplace_back([&, run] {
            std::error_code reported;
            subject.with_lock(
                "lock " + std::to_string(run), lease,
                [&](const std::stop_token&, std::uint64_t) {
                    if (run % 2 == 0) {
                        char byte = 0;
                        static_cast<void>(::read(gate[0], &byte, 1) != 0);
                        return;
                    }
                    while (boot_clock::now() < until) {
                    }
                },
                {}, reported);
            kept += reported ? 0 : 1;
        });
    }
    std::this_thread::sleep_for(5 * lease);
    ::close(gate[1]);
    for (auto& worker : workers) {
        worker.join();
    }
    ::close(gate[0]);
    return kept == runs ? "" : "kept only " + std::to_string(kept);
}

TEST(c3_busy_work, keeps_its_lock_while_it_spins_or_blocks) {
    expect_timely(spin_and_block);
}

TEST(c3_busy_work, does_not_run_when_the_heartbeat_thread_cannot_start) {
    scripted_server server;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // No more threads for a user without privileges.
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        bool ran = false;
        std::error_code reported;
        if (::setrlimit(RLIMIT_NPROC, &none) == 0 && (::getuid() != 0 || ::setuid(65534) == 0)) {
            auto subject = make_client(server.address());
            subject.with_lock_retry(
                "n", 1s, [&](const std::stop_token&, std::uint64_t) { ran = true; }, {}, reported);
        }
        ::_exit(reported == errc::thread_unavailable && !ran ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(server.accept_within(0ms));
}

TEST(c4_release, ten_thousand_rounds_leave_nothing_behind) {
    constexpr int threads = 8;
    constexpr int rounds = 10'000 / threads;
    honest_server server{milliseconds{3}};
    const auto before = resources();
    {
        auto subject = make_client(server.address());
        std::atomic<int> lost{0};
        std::vector<std::thread> workers;
        workers.reserve(threads);
        for (int worker = 0; worker < threads; ++worker) {
            workers.emplace_back([&, worker] {
                for (int round = 0; round < rounds; ++round) {
                    // Beats after 10 ms; the answer takes 3 ms more. Most rounds end in between.
                    std::error_code reported;
                    auto held =
                        subject.acquire("lock " + std::to_string(worker), 40ms, {}, reported);
                    if (held) {
                        std::this_thread::sleep_for(round % 4 == 0 ? 11ms : 0ms);
                        held.release(reported);
                    }
                    lost += reported ? 1 : 0;
                }
            });
        }
        for (auto& worker : workers) {
            worker.join();
        }
        EXPECT_LE(lost, threads * rounds / 100) << "the machine may stall for 32 ms, rarely";
        EXPECT_LE(server.grants(), static_cast<std::uint64_t>(threads * rounds));
        EXPECT_GE(server.grants(), static_cast<std::uint64_t>(threads * rounds - lost));
    }
    for (int wait = 0; wait < 1000 && server.connections() > 0; ++wait) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(server.connections(), 0);
    EXPECT_EQ(server.strange_bytes(), 0U);
    EXPECT_EQ(resources(), before);
}

TEST(c4_release, returns_at_once_and_says_no_more_when_the_server_stands_still) {
    scripted_server server;
    auto subject = make_client(server.address());
    auto call = in_background([&] { return subject.acquire("n", 4s); });
    auto connection = server.accept();
    connection.expect_acquire("n", 4s);
    connection.send(acquired_frame(7));
    auto held = call.get();
    connection.expect(heartbeat_byte);  // in flight, and never answered
    const auto before = boot_clock::now();
    held.release();
    EXPECT_LT(boot_clock::now() - before, soon);
    EXPECT_TRUE(connection.ends_within(soon)) << "or a byte came first";
}

TEST(c13_not_reentrant, the_same_name_nested_waits_like_anybody_else) {
    honest_server server;
    auto subject = make_client(server.address());
    subject.with_lock("n", 10s, [&](const std::stop_token&, std::uint64_t) {
        std::error_code reported;
        EXPECT_FALSE(subject.acquire_for("n", 10s, 50ms, {}, reported));
        EXPECT_EQ(reported, errc::wait_expired);
        EXPECT_TRUE(subject.acquire_for("another", 10s, patience));
    });
    EXPECT_TRUE(subject.try_acquire("n", 10s));
}

TEST(waiting, is_first_come_first_served_with_growing_tokens) {
    honest_server server;
    auto subject = make_client(server.address());
    auto first = subject.acquire("n", 10s);
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::uint64_t> tokens{first.token()};
    std::vector<std::thread> waiters;
    waiters.reserve(5);
    for (int waiter = 0; waiter < 5; ++waiter) {
        waiters.emplace_back([&, waiter] {
            subject.with_lock("n", 10s, [&](const std::stop_token&, std::uint64_t token) {
                const std::scoped_lock held{mutex};
                order.push_back(waiter);
                tokens.push_back(token);
            });
        });
        while (server.queued() < waiter + 1) {
            std::this_thread::sleep_for(1ms);
        }
    }
    first.release();
    for (auto& waiter : waiters) {
        waiter.join();
    }
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>{}));
}

TEST(waiting, try_acquire_does_not_queue) {
    honest_server server;
    auto subject = make_client(server.address());
    auto held = subject.try_acquire("n", 10s);
    EXPECT_TRUE(held);
    EXPECT_FALSE(subject.try_acquire("n", 10s));
    std::error_code reported;
    EXPECT_FALSE(subject.try_acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, errc::busy);
    EXPECT_NE(reported, condition::claim_lost);
    for (int wait = 0; wait < 1000 && server.connections() > 1; ++wait) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(server.connections(), 1) << "a place in the queue was kept";
}

TEST(waiting, acquire_for_counts_everything_and_leaves_the_queue) {
    scripted_server server;
    auto subject = make_client(server.address());
    EXPECT_FALSE(subject.acquire_for("n", 10s, 0ms));
    EXPECT_FALSE(server.accept_within(10ms));
    const auto before = boot_clock::now();
    auto call =
        in_background([&] { return static_cast<bool>(subject.acquire_for("n", 10s, 100ms)); });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame);
    EXPECT_TRUE(connection.ends_within(patience));
    EXPECT_FALSE(call.get());
    EXPECT_GE(boot_clock::now() - before, 100ms);
    EXPECT_LT(boot_clock::now() - before, 100ms + soon);
}

TEST(waiting, tells_each_stage_in_order) {
    scripted_server server;
    std::vector<stage> entered;
    client_options options;
    options.address = server.address();
    options.on_stage = [&](std::string_view name, stage next) {
        EXPECT_EQ(name, "n");
        entered.push_back(next);
        throw 1;  // dropped
    };
    client subject{std::move(options)};
    auto call = in_background([&] { return subject.acquire("n", 10s); });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame);
    connection.send(acquired_frame(7));
    EXPECT_TRUE(call.get());
    using enum stage;
    EXPECT_EQ(entered, (std::vector{connecting, requesting, queued, held}));
}

TEST(waiting, a_drop_in_the_queue_says_where_it_happened) {
    scripted_server server;
    auto subject = make_client(server.address());
    auto call = in_background([&] {
        try {
            static_cast<void>(subject.acquire("n", 10s));
        } catch (const error& failed) {
            EXPECT_EQ(failed.code(), errc::connection_closed);
            return failed.at();
        }
        return stage::preparing;
    });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(waiting_frame);
    connection.close();
    EXPECT_EQ(call.get(), stage::queued);
}

}  // namespace
}  // namespace monolock::testing
