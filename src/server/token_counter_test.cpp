#include "server/token_counter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

// A mandate that a test ends.
class switched_mandate final : public core::mandate_port {
public:
    [[nodiscard]] bool in_force() noexcept override { return on; }
    bool on = true;
};

// One grant a millisecond or a million a second: the tokens of all threads together are distinct,
// and each thread sees its own rise.
TEST(token_counter, gives_each_token_once_and_rising_to_every_thread) {
    constexpr std::size_t each = 20'000;
    token_counter tokens;
    std::array<std::vector<core::fencing_token>, 4> given;
    {
        std::vector<std::jthread> shards;
        for (auto& mine : given) {
            shards.emplace_back([&tokens, &mine] {
                for (std::size_t count = 0; count < each; ++count) {
                    mine.push_back(tokens.next(1s).value());
                }
            });
        }
    }
    std::vector<core::fencing_token> all;
    for (const auto& mine : given) {
        EXPECT_TRUE(std::ranges::is_sorted(mine));
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
    EXPECT_GT(all.front().value, 0U);
}

TEST(token_counter, is_about_the_time_of_the_grant) {
    token_counter tokens;
    const auto before = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = std::chrono::milliseconds{tokens.next(1s).value().value >> 10U};
    const auto after = std::chrono::system_clock::now().time_since_epoch();
    EXPECT_GE(ms, std::chrono::floor<std::chrono::milliseconds>(before));
    EXPECT_LE(ms, after);
}

TEST(token_counter, grants_below_its_ceiling_and_says_that_more_is_wanted) {
    int asked = 0;
    token_counter tokens;
    tokens.when_refused([&asked] { ++asked; });
    tokens.start_at(100);
    tokens.limit({.ceiling = 102});
    EXPECT_EQ(tokens.last(), 99U);
    EXPECT_EQ(tokens.next(1s).value().value, 101U) << "as near to the clock as the ceiling allows";
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(asked, 1) << "once is enough";
    EXPECT_TRUE(tokens.take_demand().tokens);
    EXPECT_FALSE(tokens.take_demand().tokens);
    tokens.limit({.ceiling = 103});
    EXPECT_EQ(tokens.next(1s).value().value, 102U);
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(asked, 2);
}

TEST(token_counter, never_goes_back_to_a_start_below) {
    token_counter tokens;
    const std::uint64_t before = tokens.next(1s).value().value;
    tokens.start_at(5);
    EXPECT_GT(tokens.next(1s).value().value, before);
    tokens.start_at(before + (1ULL << 40U));
    EXPECT_EQ(tokens.next(1s).value().value, before + (1ULL << 40U));
}

// A ceiling is raised while shards grant; what is said of the start then must undo no grant.
TEST(token_counter, gives_each_token_once_while_it_is_told_of_its_start) {
    token_counter tokens;
    std::vector<core::fencing_token> given;
    {
        std::vector<std::jthread> others;
        for (int count = 0; count < 3; ++count) {
            others.emplace_back([&tokens](const std::stop_token& stop) {
                while (!stop.stop_requested()) {
                    tokens.start_at(1);
                }
            });
        }
        for (std::size_t count = 0; count < 2'000'000; ++count) {
            given.push_back(tokens.next(1s).value());
        }
    }
    EXPECT_EQ(std::ranges::adjacent_find(given, std::ranges::greater_equal{}), given.end());
}

TEST(token_counter, refuses_longer_leases_and_remembers_the_longest) {
    int asked = 0;
    token_counter tokens;
    tokens.when_refused([&asked] { ++asked; });
    tokens.limit({.lease_max = 10s});
    EXPECT_TRUE(tokens.next(10s));
    EXPECT_EQ(tokens.next(12s), std::nullopt);
    EXPECT_EQ(tokens.next(11s), std::nullopt);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(tokens.next(13s), std::nullopt);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(tokens.take_demand().lease, 13s);
    EXPECT_EQ(tokens.take_demand().lease, 0s);
    tokens.limit({.lease_max = 13s});
    EXPECT_TRUE(tokens.next(13s));
}

TEST(token_counter, grants_nothing_while_closed_or_without_its_mandate) {
    switched_mandate mandate;
    token_counter tokens;
    tokens.hold_to(mandate);
    tokens.close();
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    tokens.open();
    EXPECT_TRUE(tokens.next(1s));
    mandate.on = false;
    EXPECT_EQ(tokens.next(1s), std::nullopt);
}

// It may have been about to be extended, and nothing else be a reason to try the grant again.
TEST(token_counter, says_that_its_mandate_was_missed) {
    int asked = 0;
    switched_mandate mandate;
    token_counter tokens;
    tokens.hold_to(mandate);
    tokens.when_refused([&asked] { ++asked; });
    EXPECT_TRUE(tokens.next(1s));
    EXPECT_FALSE(tokens.take_demand().mandate);
    mandate.on = false;
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(asked, 1) << "once is enough";
    EXPECT_TRUE(tokens.take_demand().mandate);
    EXPECT_FALSE(tokens.take_demand().mandate);
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(asked, 2);
    tokens.close();
    EXPECT_EQ(tokens.next(1s), std::nullopt);
    EXPECT_EQ(asked, 2) << "who is closed waits for nothing";
}

}  // namespace
}  // namespace monolock::server
