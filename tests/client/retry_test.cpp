// Cases C6 and C12: what is tried again, when, and what is not.

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

namespace monolock::testing {
namespace {

TEST(c6_retry_taxonomy, a_code_from_0x10_up_is_reported_after_exactly_one_connection) {
    for (int code = 0x10; code <= 0xff; ++code) {
        scripted_server server;
        auto subject = make_client(server.address());
        auto call = in_background([&]() -> std::error_code {
            try {
                subject.with_lock_retry("n", 10s, [](const std::stop_token&, std::uint64_t) {
                    ADD_FAILURE() << "the work ran";
                });
            } catch (const server_error& failed) {
                EXPECT_FALSE(failed.temporary());
                EXPECT_STREQ(failed.reason(), "no");
                return failed.code();
            }
            return {};
        });
        auto peer = server.accept();
        peer.expect_acquire("n", 10s);
        peer.send(error_frame(static_cast<std::uint8_t>(code), "no"));
        const auto reported = call.get();
        EXPECT_EQ(wire_code(reported), code);
        EXPECT_NE(reported, condition::retryable);
        EXPECT_EQ(reported == condition::denied, code == 0x18);
        EXPECT_FALSE(server.accept_within(0ms)) << "a second connection after " << code;
    }
}

TEST(c6_retry_taxonomy, a_code_below_0x10_is_tried_again) {
    for (int code = 0; code < 0x10; ++code) {
        scripted_server server;
        auto subject = make_client(server.address());
        auto call = in_background([&] {
            int runs = 0;
            subject.with_lock_retry("n", 10s,
                                    [&](const std::stop_token&, std::uint64_t) { ++runs; });
            return runs;
        });
        auto first = server.accept();
        first.expect_acquire("n", 10s);
        first.send(error_frame(static_cast<std::uint8_t>(code), ""));
        auto second = server.accept();
        second.expect_acquire("n", 10s);
        second.send(acquired_frame(7));
        EXPECT_EQ(call.get(), 1);
    }
}

TEST(c6_retry_taxonomy, a_lost_place_in_the_queue_is_tried_again_and_lost_work_is_not) {
    scripted_server server;
    auto subject = make_client(server.address());
    std::atomic<int> runs{0};
    std::promise<void> started;
    std::error_code reported;
    auto call = in_background([&] {
        subject.with_lock_retry(
            "n", 10s,
            [&](const std::stop_token& stop, std::uint64_t) {
                ++runs;
                started.set_value();
                while (!stop.stop_requested()) {
                    std::this_thread::sleep_for(1ms);
                }
            },
            {}, reported);
    });
    auto first = server.accept();
    first.expect_acquire("n", 10s);
    first.send(waiting_frame);
    first.close();
    auto second = server.accept();
    second.expect_acquire("n", 10s);
    second.send(acquired_frame(7));
    started.get_future().wait();
    second.send(error_frame(1, ""));
    call.get();
    EXPECT_EQ(reported, errc::server_shutting_down);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(server.accept_within(200ms));
}

TEST(c6_retry_taxonomy, invalid_input_connects_nowhere) {
    scripted_server server;
    auto subject = make_client(server.address());
    const auto work = [](const std::stop_token&, std::uint64_t) {
        ADD_FAILURE() << "the work ran";
    };
    const auto code = [&](std::string_view name, milliseconds lease) {
        return code_of([&] { subject.with_lock_retry(name, lease, work); });
    };
    EXPECT_EQ(code("", 1s), errc::empty_name);
    EXPECT_EQ(code(std::string(256, 'n'), 1s), errc::name_too_long);
    EXPECT_EQ(code("\xc0\x80", 1s), errc::name_not_utf8);
    EXPECT_EQ(code("n", 0ms), errc::lease_out_of_range);
    EXPECT_EQ(code("n", -1ms), errc::lease_out_of_range);
    EXPECT_EQ(code("n", milliseconds{0x100000000}), errc::lease_out_of_range);
    EXPECT_EQ(code("n", 0ms), condition::misuse);
    EXPECT_FALSE(server.accept_within(20ms));
}

TEST(c12_restart_herd, a_server_that_says_0x01_to_everybody_is_not_hammered) {
    scripted_server server;
    auto subject = make_client(server.address());
    std::stop_source stop;
    std::error_code reported;
    auto call = in_background([&] {
        return static_cast<bool>(subject.acquire_retry("n", 10s, stop.get_token(), reported));
    });
    const auto start = boot_clock::now();
    std::vector<boot_clock::duration> arrivals;
    while (boot_clock::now() - start < 1500ms) {
        auto peer = server.accept_within(100ms);
        if (peer) {
            arrivals.push_back(boot_clock::now() - start);
            peer->expect_acquire("n", 10s);
            peer->send(error_frame(1, ""));
        }
    }
    stop.request_stop();
    EXPECT_FALSE(call.get());
    EXPECT_EQ(reported, errc::stopped);
    // At once after the first; then 50 to 150, 100 to 300, 200 to 600, 400 to 1200 ms.
    EXPECT_GE(arrivals.size(), 4U);
    EXPECT_LE(arrivals.size(), 6U);
    ASSERT_GE(arrivals.size(), 3U);
    EXPECT_LT(arrivals[1] - arrivals[0], 100ms) << "a first 0x01 is followed at once";
    EXPECT_GE(arrivals[2] - arrivals[1], 49ms) << "a second is not";
}

// A grant that was lost before the work could start is a failed acquisition like any other.
TEST(c12_restart_herd, a_server_whose_grants_come_too_late_for_the_work_is_not_hammered) {
    scripted_server server;
    constexpr auto lease = 20ms;
    std::stop_source stop;
    std::vector<boot_clock::duration> pauses;
    std::optional<boot_clock::time_point> lost_at;
    client_options options;
    options.address = server.address();
    options.on_stage = [&](std::string_view, stage entered) {
        if (entered == stage::connecting && lost_at) {
            pauses.push_back(boot_clock::now() - *lost_at);
        }
        if (entered == stage::held) {
            std::this_thread::sleep_for(lease);  // past the deadline, whatever the server does
            lost_at = boot_clock::now();
            if (pauses.size() >= 3) {
                stop.request_stop();
            }
        }
    };
    client subject{std::move(options)};
    std::error_code reported;
    auto call = in_background([&] {
        subject.with_lock_retry(
            "n", lease,
            [](const std::stop_token&, std::uint64_t) { ADD_FAILURE() << "the work ran"; },
            stop.get_token(), reported);
    });
    while (call.wait_for(0ms) != std::future_status::ready) {
        if (auto peer = server.accept_within(10ms)) {
            peer->expect_acquire("n", lease);
            peer->send(acquired_frame(7));
            static_cast<void>(peer->answer_until_eof(""));
        }
    }
    call.get();
    EXPECT_EQ(reported, errc::stopped);
    ASSERT_GE(pauses.size(), 3U);
    for (const auto pause : pauses) {
        EXPECT_GE(pause, 49ms) << milliseconds_text(pause);
    }
}

}  // namespace
}  // namespace monolock::testing
