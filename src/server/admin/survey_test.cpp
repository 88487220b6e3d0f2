#include "server/admin/survey.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/shard.hpp"
#include "server/socket_session.hpp"
#include "support/shard_stage.hpp"

namespace monolock::server::admin {
namespace {

using std::chrono::nanoseconds;

// What an operator's question may delay a heartbeat by.
constexpr std::chrono::milliseconds delay_max{20};

nanoseconds thread_cpu_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds{now.tv_sec} + nanoseconds{now.tv_nsec};
}

// A shard full of claims whose connections the kernel has given up, which is silence and no end: so
// there may be more of them than a process has descriptors.
class crowded_shard : session_owner {
public:
    [[nodiscard]] shard& get() { return stage_.at(0); }

    // Has it done on the shard's thread, and waits for it.
    void there(const std::function<void()>& what) {
        std::promise<void> done;
        get().ask([&] {
            what();
            done.set_value();
        });
        done.get_future().wait();
    }

    // On the shard's thread.
    void claim(const std::string& name) {
        const core::session_id id{++last_id_};
        const boost::intrusive_ptr<socket_session> who{
            new socket_session{id, connection_socket{nowhere_, {}}, peer_address{}, {}, *this}};
        who->hold_for_engine();
        get().engine().admit(*who, {.lease_ms = lease_ms, .name = name}, stage_.hash_of(name),
                             std::chrono::steady_clock::now(), {});
    }

    [[nodiscard]] std::vector<lock_view> look(std::optional<std::string> match = {},
                                              std::size_t waiters_max = listed_waiters_max) {
        std::promise<std::vector<lock_view>> found;
        get().ask([&] {
            survey::begin(get(), {.match = std::move(match), .waiters_max = waiters_max},
                          [&](std::vector<lock_view> all) { found.set_value(std::move(all)); });
        });
        return found.get_future().get();
    }

    // `meanwhile` is called when the inspection has begun and has not ended.
    [[nodiscard]] std::optional<lock_view> inspect(
        const std::string& name, const std::function<void()>& meanwhile = [] {},
        std::size_t waiters_max = inspection::interest{}.waiters_max) {
        std::promise<std::optional<lock_view>> found;
        there([&] {
            inspection::begin(
                get(), {.name = name, .hash = stage_.hash_of(name), .waiters_max = waiters_max},
                [&](std::optional<lock_view> seen) { found.set_value(std::move(seen)); });
            meanwhile();
        });
        return found.get_future().get();
    }

    // On the shard's thread.
    void end_owner(const std::string& name) {
        get().end_by_operator(*get().engine().owner_of(name, stage_.hash_of(name)));
    }

    // The longest that the shard was busy with one thing while `what` went on elsewhere, in time of
    // its own: what else runs on the machine does not count.
    [[nodiscard]] nanoseconds longest_turn(const std::function<void()>& what) {
        nanoseconds longest{0};
        nanoseconds last{0};
        std::atomic<bool> enough{false};
        std::promise<void> stopped;
        const std::function<void()> take_turn = [&] {
            const nanoseconds now = thread_cpu_time();
            longest = last == nanoseconds{0} ? longest : std::max(longest, now - last);
            last = now;
            if (enough) {
                stopped.set_value();
            } else {
                get().ask(take_turn);
            }
        };
        get().ask(take_turn);
        what();
        enough = true;
        stopped.get_future().wait();
        return longest;
    }

private:
    static constexpr std::uint32_t lease_ms = 3'600'000;

    void on_readable(socket_session& /*who*/) override {}
    void on_writable(socket_session& /*who*/) override {}
    void on_linger(connection_socket&& /*socket*/) override {}

    readiness_set nowhere_;
    test::shard_stage stage_{{}};
    std::uint64_t last_id_ = 0;
};

std::string name_of(std::size_t number) {
    return "jobs/nightly-" + std::to_string(number);
}

TEST(survey, finds_every_lock_once) {
    constexpr std::size_t count = 5000;
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number < count; ++number) {
            crowded.claim(name_of(number));
        }
    });
    std::vector<lock_view> found = crowded.look();
    ASSERT_EQ(found.size(), count);
    std::vector<std::string> names;
    for (const lock_view& each : found) {
        EXPECT_TRUE(each.holder);
        names.push_back(each.name);
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
    EXPECT_EQ(crowded.look("*-1?").size(), 10U);
    EXPECT_EQ(crowded.look("nothing").size(), 0U);
}

TEST(survey, shows_as_many_waiters_as_are_of_interest) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number <= 200; ++number) {
            crowded.claim("crowded");
        }
    });
    for (const std::size_t wanted : {0U, 7U, 100U}) {
        const auto found = crowded.look({}, wanted);
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found[0].waiters.size(), wanted);
        EXPECT_EQ(found[0].waiters_total, 200U);
    }
}

TEST(survey, a_hundred_thousand_locks_delay_nobody) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number < 100'000; ++number) {
            crowded.claim(name_of(number));
        }
    });
    std::size_t found = 0;
    const nanoseconds longest = crowded.longest_turn([&] { found = crowded.look().size(); });
    EXPECT_EQ(found, 100'000U);
    EXPECT_LT(longest, delay_max);
    RecordProperty("longest_turn_us", std::to_string(longest / std::chrono::microseconds{1}));
}

TEST(survey, a_pattern_that_is_dear_to_match_delays_nobody) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number < 1000; ++number) {
            const std::string ending = std::to_string(number);
            crowded.claim(std::string(255 - ending.size(), 'a') + ending);
        }
    });
    std::string match = "*";
    match += std::string(250, 'a');
    match += "b*";
    std::size_t found = 0;
    const nanoseconds longest = crowded.longest_turn([&] { found = crowded.look(match).size(); });
    EXPECT_EQ(found, 0U);
    EXPECT_LT(longest, delay_max);
}

TEST(inspection, shows_a_long_queue_in_its_order) {
    constexpr std::size_t waiters = 3000;
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number <= waiters; ++number) {
            crowded.claim("long");
        }
    });
    std::optional<lock_view> seen;
    const nanoseconds longest = crowded.longest_turn([&] { seen = crowded.inspect("long"); });
    EXPECT_LT(longest, delay_max);
    ASSERT_TRUE(seen && seen->holder);
    EXPECT_EQ(seen->holder->id.value, 1U);
    EXPECT_EQ(seen->waiters_total, waiters);
    ASSERT_EQ(seen->waiters.size(), waiters);
    for (std::size_t place = 0; place < waiters; ++place) {
        EXPECT_EQ(seen->waiters[place].id.value, place + 2);
    }
    EXPECT_FALSE(crowded.inspect("none"));
}

TEST(inspection, of_a_long_queue_only_the_first_are_wanted) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number <= 1000; ++number) {
            crowded.claim("long");
        }
    });
    for (const std::size_t wanted : {0U, 1U, 256U, 300U, 1000U, 2000U}) {
        const auto seen = crowded.inspect(
            "long", [] {}, wanted);
        ASSERT_TRUE(seen && seen->holder) << wanted;
        EXPECT_EQ(seen->waiters_total, 1000U) << wanted;
        ASSERT_EQ(seen->waiters.size(), std::min<std::size_t>(wanted, 1000)) << wanted;
        for (std::size_t place = 0; place < seen->waiters.size(); ++place) {
            EXPECT_EQ(seen->waiters[place].id.value, place + 2);
        }
    }
}

TEST(inspection, who_became_the_owner_meanwhile_waits_no_more) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number <= 600; ++number) {
            crowded.claim("moving");
        }
    });
    const auto seen = crowded.inspect("moving", [&] {
        for (int ended = 0; ended < 300; ++ended) {
            crowded.end_owner("moving");
        }
    });
    ASSERT_TRUE(seen && seen->holder);
    EXPECT_EQ(seen->holder->id.value, 301U);
    EXPECT_NE(seen->holder->token.value, 0U);
    ASSERT_EQ(seen->waiters.size(), 300U);
    EXPECT_EQ(seen->waiters_total, 300U);
    EXPECT_EQ(seen->waiters.front().id.value, 302U);
    EXPECT_EQ(seen->waiters.back().id.value, 601U);
}

TEST(inspection, of_a_lock_that_vanished_shows_what_was_there) {
    crowded_shard crowded;
    crowded.there([&] {
        for (std::size_t number = 0; number <= 300; ++number) {
            crowded.claim("brief");
        }
    });
    const auto seen = crowded.inspect("brief", [&] {
        for (int ended = 0; ended <= 300; ++ended) {
            crowded.end_owner("brief");
        }
    });
    ASSERT_TRUE(seen && seen->holder);
    EXPECT_EQ(seen->holder->id.value, 1U);
    EXPECT_FALSE(crowded.inspect("brief"));
}

}  // namespace
}  // namespace monolock::server::admin
