// No lock that comes makes the table move all the others, and none leaves memory behind. This
// program counts every allocation, so it has one test only.

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "core/lock_table.hpp"
#include "support/counted_heap.hpp"
#include "support/scripted_ports.hpp"

namespace monolock::core {
namespace {

TEST(lock_table_allocation, a_lock_more_moves_few_others_and_none_leaves_memory_behind) {
    constexpr std::size_t locks = 100'000;
    constexpr std::size_t moved_bytes_max =
        std::size_t{64} * 1024;  // of 800,000 for the pointers alone
    support::scripted_tokens tokens;
    const name_hasher hasher{{}};
    std::deque<session> sessions;
    for (std::size_t i = 0; i < locks; ++i) {
        sessions.emplace_back(session_id{i + 1});
    }
    fact_list facts;
    facts.reserve(16);
    lock_table table{tokens};

    test::heap_use& heap = test::counted_heap();
    const std::size_t before = heap.in_use;
    heap.largest = 0;
    for (session& each : sessions) {
        const std::string name = "lock-" + std::to_string(each.id().value);
        table.acquire(each, name, hasher(name), std::chrono::seconds{10}, {}, facts);
        facts.clear();
    }
    ASSERT_EQ(table.lock_count(), locks);
    EXPECT_LT(heap.largest, moved_bytes_max);
    EXPECT_GT(heap.in_use - before, locks * sizeof(named_lock));
    const std::size_t allocations = heap.allocations;
    for (session& each : sessions) {
        table.end(each, end_reason::graceful, {}, facts);
        facts.clear();
    }
    EXPECT_GE(heap.allocations - allocations, lock_index::tables) << "every table became smaller";
    EXPECT_LE(heap.allocations - allocations, 4 * lock_index::tables) << "and seldom";
    EXPECT_LT(heap.largest, moved_bytes_max);
    EXPECT_LT(heap.in_use - before, std::size_t{64} * 1024);
}

}  // namespace
}  // namespace monolock::core
