// No lock that comes makes the table move all the others, and none leaves memory behind. This
// program counts every allocation, so it has one test only.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <new>
#include <string>

#include "core/lock_table.hpp"
#include "support/scripted_ports.hpp"

namespace {

std::size_t largest = 0;  // allocation, in bytes
std::size_t in_use = 0;

void* count_and_allocate(std::size_t size) {
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {  // NOLINT(*-no-malloc)
        largest = std::max(largest, size);
        in_use += ::malloc_usable_size(memory);
        return memory;
    }
    throw std::bad_alloc{};
}

void count_and_free(void* memory) noexcept {
    in_use -= ::malloc_usable_size(memory);
    std::free(memory);  // NOLINT(*-no-malloc)
}

}  // namespace

void* operator new(std::size_t size) {
    return count_and_allocate(size);
}
void* operator new[](std::size_t size) {
    return count_and_allocate(size);
}
void operator delete(void* memory) noexcept {
    count_and_free(memory);
}
void operator delete[](void* memory) noexcept {
    count_and_free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
    count_and_free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
    count_and_free(memory);
}

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

    const std::size_t before = in_use;
    largest = 0;
    for (session& each : sessions) {
        const std::string name = "lock-" + std::to_string(each.id().value);
        table.acquire(each, name, hasher(name), std::chrono::seconds{10}, {}, facts);
        facts.clear();
    }
    ASSERT_EQ(table.lock_count(), locks);
    EXPECT_LT(largest, moved_bytes_max);
    EXPECT_GT(in_use - before, locks * sizeof(named_lock));
    for (session& each : sessions) {
        table.end(each, end_reason::graceful, {}, facts);
        facts.clear();
    }
    EXPECT_LT(largest, moved_bytes_max);
    EXPECT_LT(in_use - before, std::size_t{64} * 1024);
}

}  // namespace
}  // namespace monolock::core
