#include "core/token_source.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include <string>

#include "vectors/vector_file.hpp"

namespace monolock::core {
namespace {

fencing_token token_at(const vectors::json& digits) {
    return {std::stoull(digits.get<std::string>())};
}

TEST(next_token, follows_the_vectors) {
    for (const auto& vector : vectors::load("tokens.json", "tokens")) {
        EXPECT_EQ(next_token(token_at(vector["previous"]), vector["unix_ms"]).value,
                  token_at(vector["next"]).value)
            << vector["about"];
    }
}

// Whatever the wall clock does between two grants.
TEST(next_token, rises_with_every_grant) {
    fencing_token last;
    const std::uint64_t now = 1'767'225'600'000;
    for (const std::uint64_t unix_ms : {now, now, now + 1, now - 3'600'000, now - 3'599'999,
                                        std::uint64_t{0}, now + 3'600'000, now + 1}) {
        for (int grants = 0; grants < 2'000; ++grants) {
            const fencing_token next = next_token(last, unix_ms);
            ASSERT_GT(next, last) << "at " << unix_ms << " ms";
            last = next;
        }
    }
}

TEST(next_token, is_about_the_time_of_the_grant) {
    const std::uint64_t unix_ms = 1'767'225'600'000;
    EXPECT_EQ(next_token({}, unix_ms).value / 1024, unix_ms);
}

TEST(next_token, stays_below_a_ceiling) {
    const std::uint64_t now = 1'767'225'600'000;
    const std::uint64_t ceiling = (now << 10U) + 3;
    EXPECT_EQ(next_token({}, now, ceiling), fencing_token{now << 10U});
    EXPECT_EQ(next_token({now << 10U}, now, ceiling), fencing_token{(now << 10U) + 1});
    EXPECT_EQ(next_token({}, now + 1, ceiling), fencing_token{ceiling - 1}) << "the clock is ahead";
    EXPECT_EQ(next_token({ceiling - 2}, now, ceiling), fencing_token{ceiling - 1});
    EXPECT_EQ(next_token({ceiling - 1}, now, ceiling), std::nullopt);
    EXPECT_EQ(next_token({ceiling}, now, ceiling), std::nullopt);
    EXPECT_EQ(next_token({}, now, 0), std::nullopt);
    EXPECT_EQ(next_token({}, now, 1), std::nullopt) << "zero is no token";
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(next_token({most}, now, most), std::nullopt);
}

}  // namespace
}  // namespace monolock::core
