#include "server/audit_queue.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr telemetry::wall_time noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + 12h};

audit_entry denied(std::string_view lock, telemetry::wall_time time = noon) {
    return {.what = audit_entry::kind::denied, .time = time, .lock = lock};
}

// All that waits, each entry as its lock's name, a gap as "-" and its count.
std::vector<std::string> drain(audit_queue& queue) {
    std::vector<std::string> out;
    while (const auto batch = queue.take(noon)) {
        for (std::size_t offset = 0; offset < batch->bytes();) {
            const audit_entry entry = batch->read(offset);
            out.push_back(entry.what == audit_entry::kind::gap ? "-" + std::to_string(entry.number)
                                                               : std::string{entry.lock});
        }
    }
    return out;
}

using strings = std::vector<std::string>;

// Room for four entries, in batches of two.
audit_queue small_queue() {
    const std::size_t each = audit_batch::size_of(denied("a"));
    return audit_queue{{.bytes_max = 4 * each, .batch_bytes = 2 * each}};
}

TEST(audit_queue, an_entry_comes_back_as_it_was) {
    sockaddr_storage nobody{};
    audit_queue queue{{}};
    const std::string lock("a\0b", 3);
    ASSERT_TRUE(queue.push({.what = audit_entry::kind::released,
                            .reason = core::end_reason::io_timeout,
                            .time = noon + 1ns,
                            .number = 1ULL << 52U,
                            .span = 4294967295ms,
                            .peer = peer_address::of(-1, nobody),
                            .lock = lock,
                            .identity = "who"}));
    const auto batch = queue.take(noon);
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->count(), 1U);
    std::size_t offset = 0;
    const audit_entry entry = batch->read(offset);
    EXPECT_EQ(offset, batch->bytes());
    EXPECT_EQ(entry.what, audit_entry::kind::released);
    EXPECT_EQ(entry.reason, core::end_reason::io_timeout);
    EXPECT_EQ(entry.time, noon + 1ns);
    EXPECT_EQ(entry.number, 1ULL << 52U);
    EXPECT_EQ(entry.span, 4294967295ms);
    EXPECT_EQ(entry.peer.to_string(), "unknown");
    EXPECT_EQ(entry.lock, lock);
    EXPECT_EQ(entry.identity, "who");
}

TEST(audit_queue, keeps_the_order_over_batches) {
    audit_queue queue{{.bytes_max = 1U << 20U, .batch_bytes = 200}};
    strings expected;
    for (int number = 0; number < 100; ++number) {
        expected.push_back(std::to_string(number));
        ASSERT_TRUE(queue.push(denied(expected.back())));
    }
    EXPECT_EQ(queue.count(), 100U);
    EXPECT_EQ(drain(queue), expected);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.count(), 0U);
}

TEST(audit_queue, one_that_is_larger_than_a_batch_has_its_own) {
    audit_queue queue{{.bytes_max = 1U << 20U, .batch_bytes = 200}};
    const std::string large(1000, 'x');
    ASSERT_TRUE(queue.push(denied("a")));
    ASSERT_TRUE(queue.push(denied(large)));
    ASSERT_TRUE(queue.push(denied("b")));
    EXPECT_EQ(drain(queue), (strings{"a", large, "b"}));
}

TEST(audit_queue, past_the_bound_entries_are_lost_and_a_gap_stands_in_their_place) {
    audit_queue queue = small_queue();
    for (const char* const name : {"a", "b", "c", "d"}) {
        EXPECT_TRUE(queue.push(denied(name)));
    }
    EXPECT_FALSE(queue.push(denied("e")));
    EXPECT_FALSE(queue.push(denied("f")));
    EXPECT_EQ(queue.lost(), 2U);
    EXPECT_TRUE(queue.take(noon));
    EXPECT_FALSE(queue.push(denied("g"))) << "half of the bound must be free for it, and its own";
    EXPECT_TRUE(queue.take(noon));
    EXPECT_TRUE(queue.push(denied("h")));
    EXPECT_EQ(drain(queue), (strings{"-3", "h"}));
    EXPECT_EQ(queue.lost(), 3U);
}

TEST(audit_queue, a_gap_at_the_end_waits_for_no_further_entry) {
    audit_queue queue = small_queue();
    for (const char* const name : {"a", "b", "c", "d", "e"}) {
        static_cast<void>(queue.push(denied(name)));
    }
    EXPECT_EQ(drain(queue), (strings{"a", "b", "c", "d", "-1"}));
    EXPECT_TRUE(queue.empty());
    EXPECT_TRUE(queue.push(denied("f")));
    EXPECT_EQ(drain(queue), (strings{"f"}));
}

TEST(audit_queue, each_loss_has_its_gap) {
    audit_queue queue = small_queue();
    strings seen;
    for (int round = 0; round < 3; ++round) {
        for (const char* const name : {"a", "b", "c", "d", "e"}) {
            static_cast<void>(queue.push(denied(name)));
        }
        const auto part = drain(queue);
        seen.insert(seen.end(), part.begin(), part.end());
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "-1"), 3);
    EXPECT_EQ(queue.lost(), 3U);
}

TEST(audit_queue, the_gap_has_the_time_of_what_follows_it) {
    audit_queue queue = small_queue();
    for (const char* const name : {"a", "b", "c", "d", "e"}) {
        static_cast<void>(queue.push(denied(name)));
    }
    static_cast<void>(queue.take(noon));
    static_cast<void>(queue.take(noon));
    ASSERT_TRUE(queue.push(denied("f", noon + 5s)));
    const auto batch = queue.take(noon);
    ASSERT_TRUE(batch);
    std::size_t offset = 0;
    EXPECT_EQ(batch->read(offset).time, noon + 5s);
    EXPECT_EQ(batch->count(), 1U) << "a gap is no entry";
}

}  // namespace
}  // namespace monolock::server
