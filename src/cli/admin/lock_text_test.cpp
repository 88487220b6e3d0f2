#include "cli/admin/lock_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

holder_facts a_holder(std::string identity = "") {
    holder_facts made;
    made.id = 17;
    made.identity = std::move(identity);
    made.remote_addr = "127.0.0.1:4242";
    made.lease = 10s;
    made.since = "2026-03-01T09:30:00.250Z";
    made.held = 3min + 12s;
    made.silent = 1200ms;
    made.token = 1839;
    return made;
}

waiter_facts a_waiter(std::uint64_t id, std::string identity = "") {
    waiter_facts made;
    made.id = id;
    made.identity = std::move(identity);
    made.remote_addr = "127.0.0.1:5000";
    made.lease = 30s;
    made.waited = 90s;
    return made;
}

lock_facts a_lock(std::string name, std::optional<holder_facts> holder = a_holder()) {
    return {
        .name = std::move(name), .holder = std::move(holder), .waiters = {}, .waiters_total = 0};
}

TEST(lock_text, a_row_for_each_lock) {
    lock_facts crowded = a_lock("a/b");
    crowded.waiters_total = 103;
    EXPECT_EQ(locks_text({a_lock("nightly"), crowded, a_lock("x", std::nullopt)}, false),
              "LOCK     OWNER            HELD  SILENT  LEASE  WAITING  TOKEN\n"
              "nightly  127.0.0.1:4242  3m12s    1.2s  10.0s        0   1839\n"
              "a/b      127.0.0.1:4242  3m12s    1.2s  10.0s      103   1839\n"
              "x        -                   -       -      -        0      -\n");
}

TEST(lock_text, identities_have_a_column_where_there_are_any) {
    const auto text = locks_text({a_lock("a"), a_lock("b", a_holder("worker 1"))}, false);
    EXPECT_THAT(text, HasSubstr("OWNER           IDENTITY     HELD"));
    EXPECT_THAT(text, HasSubstr("a     127.0.0.1:4242  -           3m12s"));
    EXPECT_THAT(text, HasSubstr("b     127.0.0.1:4242  \"worker 1\"  3m12s"));
}

TEST(lock_text, silence_is_painted_when_a_beat_is_missing) {
    lock_facts lock = a_lock("a");
    const auto paint = [&](std::chrono::milliseconds silent) {
        lock.holder->silent = silent;
        const auto text = locks_text({lock}, true);
        return text.substr(text.find('\n'));
    };
    EXPECT_THAT(paint(5s), Not(HasSubstr("\x1b")));
    EXPECT_THAT(paint(5001ms), HasSubstr("\x1b[33m5.0s"));
    EXPECT_THAT(paint(7501ms), HasSubstr("\x1b[31m7.5s"));
}

TEST(lock_text, one_lock_with_its_queue) {
    lock_facts lock = a_lock("nightly");
    EXPECT_EQ(
        lock_text(lock, false),
        "lock nightly, held by 127.0.0.1:4242, id 17, for 3m12s, token 1839, silent for 1.2s of a "
        "lease of 10.0s\n"
        "nobody waits\n");
    lock.waiters = {a_waiter(18), a_waiter(19, "worker-2")};
    lock.waiters_total = 2;
    EXPECT_THAT(lock_text(lock, false),
                HasSubstr("2 wait\n"
                          "\n"
                          "#  WAITER          IDENTITY  WAITED  LEASE  ID\n"
                          "1  127.0.0.1:5000  -          1m30s  30.0s  18\n"
                          "2  127.0.0.1:5000  worker-2   1m30s  30.0s  19\n"));
}

// Names that differ look different, and each takes the columns that it is given.
TEST(lock_text, what_is_not_seen_is_written_out) {
    EXPECT_EQ(
        locks_text({a_lock("\u0301b"), a_lock("a\u200Bb"), a_lock("ab\U000E0041"),
                    a_lock("e\u0301\u0302")},
                   false),
        "LOCK           OWNER            HELD  SILENT  LEASE  WAITING  TOKEN\n"
        "\"\\u{301}b\"     127.0.0.1:4242  3m12s    1.2s  10.0s        0   1839\n"
        "\"a\\u{200b}b\"   127.0.0.1:4242  3m12s    1.2s  10.0s        0   1839\n"
        "\"ab\\u{e0041}\"  127.0.0.1:4242  3m12s    1.2s  10.0s        0   1839\n"
        "\"e\u0301\u0302\"            127.0.0.1:4242  3m12s    1.2s  10.0s        0   1839\n");
}

// What anybody may call a lock, or be called by a certificate, must not look like anything else.
TEST(lock_text, nothing_from_outside_forges_a_line_or_moves_the_cursor) {
    const std::string hostile = "a\nLOCK  x\r\x1b[2J\x9b\u202E\u2028\t\x7f";
    lock_facts lock = a_lock(hostile, a_holder(hostile));
    lock.holder->remote_addr = hostile;
    lock.holder->since = hostile;
    lock.waiters = {a_waiter(1, hostile)};
    change_facts change{.event = hostile,
                        .time = hostile,
                        .name = hostile,
                        .identity = hostile,
                        .remote_addr = hostile,
                        .token = 1,
                        .lasted = 1s,
                        .reason = hostile};
    const json info = json::object({{hostile, 1}, {"version", "1\n2\x1b[2J"}});
    const std::vector<std::pair<std::string, int>> texts{
        {locks_text({lock}, false), 2}, {lock_text(lock, false), 5},
        {held_text(lock), 1},           {change_text(change, false), 1},
        {info_text(info), 2},           {no_locks_text(hostile), 1},
        {describe(*lock.holder), 0},    {describe(lock.waiters.front()), 0},
        {owner_and_place(lock, {}), 0},
    };
    for (const auto& [text, lines] : texts) {
        EXPECT_EQ(std::ranges::count(text, '\n'), lines) << text;
        for (const char* const mark : {"\r", "\x1b", "\x9b", "\u202E", "\u2028", "\t", "\x7f"}) {
            EXPECT_EQ(text.find(mark), std::string::npos) << text;
        }
    }
}

TEST(lock_text, owner_and_place_in_the_queue) {
    lock_facts lock = a_lock("n", a_holder("worker-1"));
    const std::string held =
        "held by 127.0.0.1:4242 (worker-1) since 2026-03-01T09:30:00.250Z (3m12s), token 1839; ";
    EXPECT_EQ(owner_and_place(lock, {"127.0.0.1:6000"}), held + "nobody waits");
    lock.waiters = {a_waiter(1), a_waiter(2), a_waiter(3)};
    lock.waiters[1].remote_addr = "[::1]:6000";
    lock.waiters_total = 3;
    EXPECT_EQ(owner_and_place(lock, {"unix:pid=1,uid=2", "[::1]:6000"}),
              held + "number 2 of 3 in the queue");
    EXPECT_EQ(owner_and_place(lock, {"127.0.0.1:4242"}), held + "3 wait");
    lock.holder.reset();
    EXPECT_EQ(owner_and_place(lock, {}), "nobody holds it; 3 wait");
}

TEST(lock_text, changes_are_lines) {
    change_facts change{.event = "granted",
                        .time = "2026-03-01T09:30:00.250Z",
                        .name = "nightly",
                        .identity = "worker-1",
                        .remote_addr = "127.0.0.1:4242",
                        .token = 7,
                        .lasted = 3min + 12s,
                        .reason = {}};
    EXPECT_EQ(change_text(change, true),
              "2026-03-01T09:30:00.250Z  granted   nightly  token=7 waited=3m12s  127.0.0.1:4242 "
              "worker-1\n");
    change.event = "released";
    change.reason = "expired";
    change.identity.clear();
    EXPECT_EQ(change_text(change, true),
              "\x1b[33m2026-03-01T09:30:00.250Z  released  nightly  token=7 held=3m12s expired  "
              "127.0.0.1:4242\x1b[0m\n");
    EXPECT_EQ(
        held_text(a_lock("nightly")),
        "2026-03-01T09:30:00.250Z  held      nightly  token=1839 held=3m12s  127.0.0.1:4242\n");
    EXPECT_EQ(held_text(a_lock("nightly", std::nullopt)), "");
}

TEST(lock_text, info_is_a_line_for_each_thing) {
    const json info = json::object({{"version", "1.2.3"},
                                    {"uptime_ms", 192'000U},
                                    {"config", {{"tls", true}, {"acl_file", ""}, {"threads", 2}}},
                                    {"locks", 5},
                                    {"sessions", 9}});
    EXPECT_EQ(info_text(info),
              "version   1.2.3\n"
              "uptime    3m12s\n"
              "tls       yes\n"
              "acl_file  -\n"
              "threads   2\n"
              "locks     5\n"
              "sessions  9\n");
    EXPECT_EQ(summary(info), "up 3m12s, 5 locks, 9 sessions");
    EXPECT_EQ(summary(json::object({{"locks", 1}, {"sessions", 0}})), "1 lock, 0 sessions");
}

}  // namespace
}  // namespace monolock::cli
