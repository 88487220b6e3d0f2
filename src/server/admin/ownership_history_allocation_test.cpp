#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/admin/ownership_history.hpp"
#include "support/counted_heap.hpp"

namespace monolock::server::admin {
namespace {

constexpr int names = 5000;  // more than are remembered

std::string lock_name(int number, std::size_t bytes) {
    const std::string ending = std::to_string(number);
    return std::string(bytes - ending.size(), 'n') + ending;
}

void fill(ownership_history& with, std::size_t name_bytes, std::size_t identity_bytes) {
    ownership_change change;
    for (int number = 0; number < 2 * names; ++number) {
        change.lock = lock_name(number % names, name_bytes);
        change.identity.assign(identity_bytes, 'i');
        with.add(change, {std::hash<std::string>{}(change.lock)});
    }
}

std::size_t bytes_of(std::size_t name_bytes, std::size_t identity_bytes) {
    const std::size_t before = test::counted_heap().in_use;
    const auto history = std::make_unique<ownership_history>();
    fill(*history, name_bytes, identity_bytes);
    return test::counted_heap().in_use - before;
}

// The bounds that the header and docs/operating.md state.
TEST(ownership_history, is_as_large_as_it_says_and_allocates_nothing_once_it_is_full) {
    const std::size_t short_names = bytes_of(20, 0);
    RecordProperty("bytes_of_short_names", std::to_string(short_names));
    EXPECT_LT(short_names, 1'600'000U);
    std::size_t largest = 0;
    for (const std::size_t identity : {40U, 200U, 255U, 300U, 2'000U, 60'000U}) {
        largest = std::max(largest, bytes_of(255, identity));
    }
    RecordProperty("bytes_at_most", std::to_string(largest));
    EXPECT_LT(largest, 3'700'000U);

    ownership_history history;
    fill(history, 20, 40);
    ownership_change change;
    change.lock = lock_name(7, 20);
    change.identity.assign(40, 'i');
    const std::size_t before = test::counted_heap().allocations;
    for (int round = 0; round < 10'000; ++round) {
        history.add(change, {static_cast<std::uint64_t>(round)});
    }
    EXPECT_EQ(test::counted_heap().allocations - before, 0U);
}

}  // namespace
}  // namespace monolock::server::admin
