// The driven client over TLS: files and handshakes on threads that leave.

#include <poll.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "monolock/driven.hpp"
#include "tls_support.hpp"

namespace monolock::testing {
namespace {

[[nodiscard]] std::size_t threads() {
    const std::filesystem::directory_iterator all{"/proc/self/task"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class driven_over_tls : public over_tls {
protected:
    [[nodiscard]] acquisition::result result_of(driven_client& subject, acquisition& asked) {
        const auto deadline = boot_clock::now() + patience;
        while (boot_clock::now() < deadline) {
            pollfd watched{.fd = subject.native_handle(), .events = POLLIN, .revents = 0};
            ::poll(&watched, 1, 5);
            subject.poll();
            if (auto got = asked.take()) {
                return *std::move(got);
            }
        }
        throw std::runtime_error{"no result"};
    }
};

TEST_P(driven_over_tls, waits_in_the_queue_without_a_thread) {
    driven_client subject{options_with(trusting())};
    std::thread{[] {}}.join();  // ThreadSanitizer adds one of its own to the first
    const auto before = threads();
    auto asked = subject.acquire("n", 10s, {}, [] {});
    auto server_side = in_background([&] {
        auto connection = accept();
        connection.expect_acquire("n", 10s);
        connection.send(waiting_frame);
        return connection;
    });
    while (server_side.wait_for(0s) != std::future_status::ready) {
        std::this_thread::sleep_for(1ms);
        subject.poll();
    }
    auto connection = server_side.get();
    const auto deadline = boot_clock::now() + patience;
    while (threads() > before && boot_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
        subject.poll();
    }
    EXPECT_EQ(threads(), before);
    EXPECT_FALSE(asked.take());
    connection.send(acquired_frame(7));
    auto result = result_of(subject, asked);
    EXPECT_EQ(result.held.token(), 7U);
    result.held.release();
    EXPECT_TRUE(connection.ends_within(soon));
    EXPECT_TRUE(connection.heard_close_notify());
}

TEST_P(driven_over_tls, a_server_that_is_not_trusted_is_named) {
    const test::certificate_authority stranger;
    driven_client subject{
        options_with({.ca_file = folder.write("other.pem", stranger.certificate())})};
    auto asked = subject.acquire("n", 10s, {.retry = true}, [] {});
    auto server_side = in_background([&] { return server.accept().secure(side); });
    const auto result = result_of(subject, asked);
    static_cast<void>(server_side.get());
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->code(), errc::server_not_trusted);
    EXPECT_EQ(result.failure->at(), stage::connecting);
}

TEST_P(driven_over_tls, a_file_that_is_missing_is_named) {
    driven_client subject{options_with({.ca_file = "/nowhere/ca.pem"})};
    auto asked = subject.acquire("n", 10s, {.retry = true}, [] {});
    const auto result = result_of(subject, asked);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->code(), errc::tls_files);
    EXPECT_NE(std::string_view{result.failure->detail()}.find("/nowhere/ca.pem"),
              std::string_view::npos);
}

// At each moment of the way: while files are read, in the handshake, before an answer.
TEST_P(driven_over_tls, may_be_destroyed_at_any_moment) {
    driven_client subject{options_with(trusting())};
    std::atomic<bool> done{false};
    auto server_side = in_background([&] {
        std::vector<peer> open;
        while (!done) {
            if (auto connection = server.accept_within(10ms)) {
                static_cast<void>(connection->secure(side));  // it may have left before
                open.push_back(*std::move(connection));
            }
        }
    });
    for (int round = 0; round < 60; ++round) {
        std::atomic<int> told{0};
        {
            auto asked = subject.acquire("n", 10s, {}, [&] { ++told; });
            const auto end = boot_clock::now() + round * 100us;
            while (boot_clock::now() < end) {
                subject.poll();
            }
        }
        EXPECT_EQ(told, 0);
    }
    done = true;
    server_side.get();
}

INSTANTIATE_TEST_SUITE_P(versions, driven_over_tls,
                         ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION), version_name);

}  // namespace
}  // namespace monolock::testing
