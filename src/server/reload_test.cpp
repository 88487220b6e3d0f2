#include "server/reload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <optional>
#include <string>
#include <utility>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

// A reload of scripted parts, on a loop that the test turns.
class stage {
public:
    stage() { testing::internal::CaptureStderr(); }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() {
        if (log_) {
            static_cast<void>(log());
        }
    }

    [[nodiscard]] reload& subject() { return *subject_; }
    void turn_for(std::chrono::milliseconds time) {
        const auto work = boost::asio::make_work_guard(loop_);  // lasts, even if nothing waits
        loop_.restart();
        loop_.run_for(time);
    }
    // Everything that was logged; the end of the stage.
    [[nodiscard]] std::string log() {
        subject_.reset();
        log_.reset();
        return testing::internal::GetCapturedStderr();
    }

private:
    loop loop_;
    std::optional<logger> log_{std::in_place, telemetry::log_level::info,
                               telemetry::log_format::text};
    std::optional<reload> subject_{std::in_place, loop_, *log_};
};

TEST(reload, says_so_when_there_is_nothing_to_read_again) {
    stage on;
    on.subject().request();
    EXPECT_THAT(on.log(), HasSubstr("reload: nothing is configured that could be read again"));
}

TEST(reload, a_part_that_fails_is_told_in_one_line_and_counted_and_stops_no_other) {
    stage on;
    int good_loads = 0;
    on.subject().add("bad", [] {
        return config::checked<std::string>{config::diagnostics{{"a: x\ny"}, {"b: z"}}};
    });
    on.subject().add("good", [&]() -> config::checked<std::string> {
        return "state " + std::to_string(++good_loads);
    });
    on.subject().request();
    EXPECT_EQ(good_loads, 1);
    EXPECT_EQ(on.subject().failures("bad"), 1U);
    EXPECT_EQ(on.subject().failures("good"), 0U);
    EXPECT_EQ(on.subject().failures("another"), 0U);
    on.subject().request();
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(good_loads, 2);
    EXPECT_EQ(on.subject().failures("bad"), 2U);
    const std::string log = on.log();
    EXPECT_EQ(std::ranges::count(log, '\n'), 4);
    EXPECT_THAT(log, AllOf(HasSubstr("level=error msg=\"reload failed, what was in force stays\" "
                                     "part=bad reason=\"a: x\\ny; b: z\" reload_failures=1\n"),
                           HasSubstr("reload_failures=2\n"),
                           HasSubstr("level=info msg=\"reloaded\" part=good now=\"state 1\"\n"),
                           HasSubstr("now=\"state 2\"\n")));
}

TEST(reload, tells_its_observer_of_each_load_and_what_failed) {
    stage on;
    std::string story;
    on.subject().observe({.begins = [&] { story += "begins;"; },
                          .ended =
                              [&](const std::vector<std::string_view>& failed) {
                                  story += "ended";
                                  for (const std::string_view name : failed) {
                                      story += " without " + std::string{name};
                                  }
                                  story += ";";
                              }});
    on.subject().request();
    EXPECT_EQ(story, "begins;ended;") << "also when there is nothing to load";
    story.clear();
    on.subject().add("good", [&]() -> config::checked<std::string> {
        story += "loads;";
        return std::string{};
    });
    on.subject().add("bad",
                     [] { return config::checked<std::string>{config::diagnostics{{"a: x"}}}; });
    on.subject().request();
    on.subject().request();
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(story, "begins;loads;ended without bad;") << "requests answered together, one load";
}

TEST(reload, nothing_is_told_before_it_is_in_force_everywhere) {
    stage on;
    std::string story;
    reload::callback settled;
    on.subject().add("part", [&]() -> config::checked<std::string> {
        story += "loads;";
        return std::string{};
    });
    on.subject().observe(
        {.begins = [&] { story += "begins;"; }, .ended = [&](const auto&) { story += "ended;"; }});
    on.subject().settle_by([&](reload::callback done) { settled = std::move(done); }, 1h);
    on.subject().request();
    on.subject().request();
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(std::exchange(story, {}), "begins;loads;") << "and no second load meanwhile";
    settled();
    EXPECT_EQ(std::exchange(story, {}), "ended;");
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(std::exchange(story, {}), "begins;loads;") << "what was asked for meanwhile";
    on.subject().close();
    settled();
    EXPECT_EQ(story, "") << "the server goes away";
    const std::string log = on.log();
    EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
}

TEST(reload, a_part_that_never_settles_keeps_nobody_for_ever) {
    stage on;
    int ended = 0;
    reload::callback settled;
    on.subject().add("part", []() -> config::checked<std::string> { return std::string{}; });
    on.subject().observe({.begins = [] {}, .ended = [&](const auto&) { ++ended; }});
    on.subject().settle_by([&](reload::callback done) { settled = std::move(done); }, 5ms);
    on.subject().request();
    EXPECT_EQ(ended, 0);
    on.turn_for(50ms);
    EXPECT_EQ(ended, 1);
    settled();
    EXPECT_EQ(ended, 1) << "once";
}

TEST(reload, a_storm_of_requests_costs_few_loads_and_the_last_state_wins) {
    stage on;
    int state = 0;
    int loaded = -1;
    int loads = 0;
    on.subject().add("part", [&]() -> config::checked<std::string> {
        loaded = state;
        ++loads;
        return std::string{};
    });
    for (int request = 0; request < 100; ++request) {
        state = request;
        on.subject().request();
        if (request % 10 == 0) {
            on.turn_for(1ms);
        }
    }
    EXPECT_LT(loads, 100);
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(loaded, 99);
    const int loads_of_the_storm = loads;
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(loads, loads_of_the_storm) << "each request was answered";
    on.subject().request();
    EXPECT_EQ(loads, loads_of_the_storm + 1) << "at once after a quiet time";
}

TEST(reload, is_ignored_once_the_server_goes_away) {
    stage on;
    int loads = 0;
    on.subject().add("part", [&]() -> config::checked<std::string> {
        ++loads;
        return std::string{};
    });
    on.subject().request();
    on.subject().request();  // would be answered later
    on.subject().close();
    on.subject().request();
    on.turn_for(2 * reload::pause);
    EXPECT_EQ(loads, 1);
    EXPECT_THAT(on.log(), HasSubstr("reload ignored: the server is shutting down"));
}

}  // namespace
}  // namespace monolock::server
