#include "server/token_counter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace monolock::server {
namespace {

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
                    mine.push_back(tokens.next());
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
    const auto ms = std::chrono::milliseconds{tokens.next().value >> 10U};
    const auto after = std::chrono::system_clock::now().time_since_epoch();
    EXPECT_GE(ms, std::chrono::floor<std::chrono::milliseconds>(before));
    EXPECT_LE(ms, after);
}

}  // namespace
}  // namespace monolock::server
