#include "client/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace monolock::detail {
namespace {

using namespace std::chrono_literals;

constexpr backoff::attempt_end refused{.admitted = false, .shutting_down = false};
constexpr backoff::attempt_end dropped{.admitted = true, .shutting_down = false};
constexpr backoff::attempt_end shut_out{.admitted = false, .shutting_down = true};
constexpr backoff::attempt_end shut_down{.admitted = true, .shutting_down = true};
constexpr double middle = 0.5;  // the nominal delay itself

TEST(backoff, doubles_from_100_ms_to_5_s) {
    backoff subject;
    for (const auto nominal : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
        EXPECT_EQ(subject.next(refused, middle), nominal);
    }
}

TEST(backoff, of_a_list_stays_below_a_second) {
    backoff subject{backoff_max_of_list};
    for (const auto nominal : {100ms, 200ms, 400ms, 500ms, 500ms}) {
        EXPECT_EQ(subject.next(refused, middle), nominal);
    }
    EXPECT_LT(subject.next(refused, 0.9999), 750ms);
    EXPECT_EQ(subject.next(dropped, middle), 100ms) << "anew";
    for (const auto nominal : {200ms, 400ms, 500ms, 500ms}) {
        EXPECT_EQ(subject.next(refused, middle), nominal) << "and to the same end";
    }
}

TEST(backoff, spreads_each_delay_between_half_and_one_and_a_half) {
    EXPECT_EQ(backoff{}.next(refused, 0.0), 50ms);
    EXPECT_LT(backoff{}.next(refused, 0.9999), 150ms);
    EXPECT_GT(backoff{}.next(refused, 0.9999), 149ms);
}

TEST(backoff, goes_at_once_after_a_first_0x01_and_not_after_the_next) {
    backoff subject;
    EXPECT_EQ(subject.next(shut_out, middle), 0ms);
    EXPECT_EQ(subject.next(shut_out, middle), 100ms);
    EXPECT_EQ(subject.next(shut_out, middle), 200ms);
    EXPECT_EQ(subject.next(refused, middle), 400ms);
    EXPECT_EQ(subject.next(shut_out, middle), 800ms) << "a refusal is no admitted session";
}

TEST(backoff, starts_anew_after_an_admitted_session) {
    backoff subject;
    EXPECT_EQ(subject.next(shut_down, middle), 0ms);
    EXPECT_EQ(subject.next(shut_out, middle), 100ms);
    EXPECT_EQ(subject.next(shut_down, middle), 0ms);
    EXPECT_EQ(subject.next(refused, middle), 100ms);
    EXPECT_EQ(subject.next(refused, middle), 200ms);
    EXPECT_EQ(subject.next(dropped, middle), 100ms);
}

// Case C12: clients that lose a server together come back spread out. 0.2 is twice an even share.
TEST(backoff, spreads_a_herd_over_the_span_of_each_wave) {
    constexpr std::uint64_t seed = 20240229;
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> uniform;
    constexpr int clients = 1000;
    std::array<std::chrono::nanoseconds, clients> at{};
    std::array<backoff, clients> herd;
    for (int wave = 0; wave < 8; ++wave) {
        for (std::size_t client = 0; client < clients; ++client) {
            at[client] = herd[client].next(refused, uniform(random));
        }
        const auto [first, last] = std::minmax_element(at.begin(), at.end());
        const auto span = *last - *first;
        std::array<int, 10> tenths{};
        for (const auto when : at) {
            const auto tenth = std::min<std::int64_t>((when - *first) * 10 / span, 9);
            ++tenths.at(static_cast<std::size_t>(tenth));
        }
        EXPECT_LE(*std::max_element(tenths.begin(), tenths.end()), clients / 5)
            << "wave " << wave << ", seed " << seed;
    }
}

}  // namespace
}  // namespace monolock::detail
