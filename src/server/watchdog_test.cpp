#include "server/watchdog.hpp"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "server/health.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds interval{20};

// A watchdog over two shards that answer or do not, as they are told, on its own loop.
class watchdog_test : public testing::Test {
protected:
    void turns(int count) { loop_.run_for(count * interval + interval / 2); }
    // Runs the loop until the watchdog says so; a busy machine may take its time.
    [[nodiscard]] bool says(bool all_turn) {
        const auto end = std::chrono::steady_clock::now() + 10s;
        while (subject_.all_turn() != all_turn && std::chrono::steady_clock::now() < end) {
            loop_.run_for(interval);
        }
        return subject_.all_turn() == all_turn;
    }
    void wake(std::size_t number) {
        sleeps_[number] = false;
        for (auto& answer : std::exchange(kept_[number], {})) {
            answer();
        }
    }

    loop loop_{one_thread_hint};
    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    std::array<bool, 2> sleeps_{};
    std::array<std::vector<std::function<void()>>, 2> kept_;
    std::array<int, 2> asked_{};
    watchdog subject_{loop_, 2,
                      [this](std::size_t number, std::function<void()> answer) {
                          ++asked_[number];
                          if (sleeps_[number]) {
                              kept_[number].push_back(std::move(answer));
                          } else {
                              boost::asio::post(loop_, std::move(answer));
                          }
                      },
                      log_, interval};
};

TEST_F(watchdog_test, blames_nobody_who_answers) {
    subject_.start();
    while (asked_[0] < 3) {
        turns(1);
    }
    EXPECT_TRUE(subject_.all_turn());
}

TEST_F(watchdog_test, a_shard_that_sleeps_is_found_once_and_forgiven_when_it_turns) {
    health told{subject_};
    told.begin_serving();
    subject_.start();
    turns(1);
    sleeps_[1] = true;
    turns(watchdog::unanswered_max - 1);
    EXPECT_TRUE(subject_.all_turn()) << "not before its time";
    EXPECT_EQ(told.trouble(), std::nullopt);
    EXPECT_TRUE(says(false));
    EXPECT_EQ(told.trouble(), "a shard has stalled");
    EXPECT_EQ(told.unready(), "a shard has stalled");
    EXPECT_EQ(kept_[1].size(), 1U) << "questions do not pile up";
    wake(1);
    EXPECT_TRUE(says(true));
    EXPECT_EQ(told.trouble(), std::nullopt);
}

TEST_F(watchdog_test, a_pause_of_the_whole_process_is_nobodys_stall) {
    subject_.start();
    turns(1);
    // The loop itself stands still, as after SIGSTOP: many intervals pass in one of its turns.
    boost::asio::post(loop_, [] {
        const auto end = std::chrono::steady_clock::now() + 2 * watchdog::unanswered_max * interval;
        while (std::chrono::steady_clock::now() < end) {
        }
    });
    turns(1);
    loop_.run_one();
    EXPECT_TRUE(subject_.all_turn());
}

TEST(health, says_what_stage_the_server_is_in) {
    loop on{one_thread_hint};
    logger log{telemetry::log_level::error, telemetry::log_format::text};
    const watchdog over{on, 0, [](std::size_t, const std::function<void()>&) {}, log};
    health subject{over};
    EXPECT_EQ(subject.trouble(), std::nullopt);
    EXPECT_EQ(subject.unready(), "starting");
    subject.begin_serving();
    EXPECT_EQ(subject.unready(), std::nullopt);
    subject.begin_shutdown();
    EXPECT_EQ(subject.trouble(), "shutting down");
    EXPECT_EQ(subject.unready(), "shutting down");
}

}  // namespace
}  // namespace monolock::server
