#include "faults/impairment.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace monolock::faults {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

packet numbered(int number) {
    return {static_cast<std::byte>(number % 256), static_cast<std::byte>(number / 256)};
}
int number_of(const packet& what) {
    return std::to_integer<int>(what.at(0)) + 256 * std::to_integer<int>(what.at(1));
}

// What leaves until then, and when.
struct departure {
    int number;
    instant at;
    friend bool operator==(const departure&, const departure&) = default;
};
std::vector<departure> departures(impairment& network, instant until) {
    std::vector<departure> seen;
    while (network.next_departure() && *network.next_departure() <= until) {
        const instant now = *network.next_departure();
        seen.push_back({number_of(*network.depart(now)), now});
    }
    return seen;
}

// Packets 0 to count - 1, one each millisecond; what left.
std::vector<departure> run(std::uint64_t seed, const impairments& how, int count,
                           impairment::counters* counts = nullptr) {
    impairment network{seed};
    network.become(how);
    for (int number = 0; number < count; ++number) {
        network.offer(numbered(number), number * 1ms);
    }
    auto seen = departures(network, 1h);
    if (counts != nullptr) {
        *counts = network.counts();
    }
    return seen;
}

std::vector<int> numbers(const std::vector<departure>& of) {
    std::vector<int> found;
    for (const departure& one : of) {
        found.push_back(one.number);
    }
    return found;
}

TEST(Impairment, APerfectNetworkPassesEverythingAtOnce) {
    EXPECT_THAT(run(1, {}, 3),
                ElementsAre(departure{0, 0ms}, departure{1, 1ms}, departure{2, 2ms}));
}

TEST(Impairment, NothingLeavesBeforeItsTime) {
    impairment network{1};
    network.become({.delay = 10ms});
    EXPECT_EQ(network.next_departure(), std::nullopt);
    network.offer(numbered(7), 5ms);
    EXPECT_EQ(network.next_departure(), 15ms);
    EXPECT_EQ(network.depart(15ms - 1ns), std::nullopt);
    EXPECT_EQ(network.depart(15ms), numbered(7));
    EXPECT_EQ(network.depart(15ms), std::nullopt);
}

TEST(Impairment, JitterKeepsTheOrderAndItsBounds) {
    const auto seen = run(1, {.delay = 10ms, .jitter = 20ms}, 1000);
    ASSERT_EQ(seen.size(), 1000U);
    instant least = 1h;
    instant most{0};
    for (int number = 0; number < 1000; ++number) {
        ASSERT_EQ(seen[static_cast<std::size_t>(number)].number, number);
        const instant took = seen[static_cast<std::size_t>(number)].at - number * 1ms;
        least = std::min(least, took);
        most = std::max(most, took);
    }
    EXPECT_GE(least, 10ms);
    EXPECT_LE(most, 30ms);
    EXPECT_GT(most - least, 10ms);
}

TEST(Impairment, AShareIsLost) {
    impairment::counters counts;
    const auto seen = run(1, {.lost = 100'000}, 10'000, &counts);
    EXPECT_EQ(seen.size() + counts.lost, 10'000U);
    EXPECT_NEAR(static_cast<double>(counts.lost), 1000, 100);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end(), [](const auto& left, const auto& right) {
        return left.number < right.number;
    }));
}

TEST(Impairment, AShareComesTwice) {
    impairment::counters counts;
    const auto seen = run(1, {.doubled = 1'000'000}, 3, &counts);
    EXPECT_THAT(numbers(seen), ElementsAre(0, 0, 1, 1, 2, 2));
    EXPECT_EQ(counts.doubled, 3U);
    EXPECT_EQ(counts.left, 6U);
}

TEST(Impairment, AShareIsOvertaken) {
    impairment::counters counts;
    auto seen = run(3, {.overtaken = 100'000, .held_back = 5ms}, 1000, &counts);
    EXPECT_EQ(seen.size(), 1000U);
    EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end(), [](const auto& left, const auto& right) {
        return left.number < right.number;
    }));
    EXPECT_NEAR(static_cast<double>(counts.overtaken), 100, 40);
    const auto late = std::count_if(
        seen.begin(), seen.end(), [](const departure& one) { return one.at != one.number * 1ms; });
    EXPECT_EQ(static_cast<std::uint64_t>(late), counts.overtaken);
}

TEST(Impairment, ACutTakesWhatIsUnderWayToo) {
    impairment network{1};
    network.become({.delay = 10ms});
    network.offer(numbered(0), 0ms);
    network.become({.delay = 10ms, .cut = true});
    network.offer(numbered(1), 1ms);
    network.become({});
    network.offer(numbered(2), 2ms);
    EXPECT_THAT(departures(network, 1h), ElementsAre(departure{2, 2ms}));
    EXPECT_EQ(network.counts().cut, 2U);
}

TEST(Impairment, AChangeIsForWhatComesAfterwardsAndOvertakesNothing) {
    impairment network{1};
    network.become({.delay = 10ms});
    network.offer(numbered(0), 0ms);
    network.become({});
    network.offer(numbered(1), 1ms);
    EXPECT_THAT(departures(network, 1h), ElementsAre(departure{0, 10ms}, departure{1, 10ms}));
}

TEST(Impairment, AFullQueueDrops) {
    impairment network{1};
    network.become({.delay = 1s});
    for (std::size_t count = 0; count <= impairment::packets_max; ++count) {
        network.offer(numbered(0), 0ms);
    }
    EXPECT_EQ(network.counts().overflowed, 1U);
    EXPECT_EQ(departures(network, 1s).size(), impairment::packets_max);
}

TEST(Impairment, IsTheSameForTheSameSeed) {
    const impairments bad{.delay = 5ms,
                          .jitter = 5ms,
                          .lost = 50'000,
                          .doubled = 50'000,
                          .overtaken = 50'000,
                          .held_back = 3ms};
    EXPECT_EQ(run(7, bad, 500), run(7, bad, 500));
    EXPECT_NE(run(7, bad, 500), run(8, bad, 500));
}

TEST(Impairment, LosesTheSamePacketsWithAndWithoutACut) {
    impairment whole{7};
    impairment interrupted{7};
    for (int number = 0; number < 200; ++number) {
        const bool cut = number < 100;
        whole.become({.lost = 300'000});
        interrupted.become({.lost = 300'000, .cut = cut});
        whole.offer(numbered(number), number * 1ms);
        interrupted.offer(numbered(number), number * 1ms);
    }
    auto expected = departures(whole, 1h);
    expected.erase(std::remove_if(expected.begin(), expected.end(),
                                  [](const departure& one) { return one.number < 100; }),
                   expected.end());
    EXPECT_EQ(departures(interrupted, 1h), expected);
    EXPECT_GT(expected.size(), 50U);
    EXPECT_LT(expected.size(), 90U);
}

}  // namespace
}  // namespace monolock::faults
