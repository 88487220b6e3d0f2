#include "server/admin/ownership_history.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace monolock::server::admin {
namespace {

using namespace std::chrono_literals;

constexpr core::time_point start{100h};

// Keyed in the server; here it must only tell most names apart.
core::name_hash hash_of(std::string_view name) {
    return {std::hash<std::string_view>{}(name)};
}

ownership_change change_of(std::string lock, core::nanoseconds at, std::string identity = {}) {
    ownership_change made;
    made.lock = std::move(lock);
    made.identity = std::move(identity);
    made.at = start + at;
    made.token = core::fencing_token{static_cast<std::uint64_t>(at.count()) + 1};
    return made;
}

void add(ownership_history& to, const std::string& lock, int count, core::nanoseconds from = 0ns,
         const std::string& identity = {}) {
    for (int index = 0; index < count; ++index) {
        to.add(change_of(lock, from + index * 1us, identity), hash_of(lock));
    }
}

ownership_history::past past_of(const ownership_history& in, const std::string& lock) {
    return in.of(lock, hash_of(lock));
}

TEST(ownership_history, keeps_what_it_was_told_in_order) {
    ownership_history all;
    ownership_change change = change_of("a", 3s, "alice");
    change.what = ownership_change::kind::released;
    change.reason = core::end_reason::expired;
    change.id = {7};
    change.lasted = 2s;
    all.add(change_of("a", 1s, "alice"), hash_of("a"));
    all.add(change_of("b", 2s), hash_of("b"));
    all.add(change, hash_of("a"));
    const auto past = past_of(all, "a");
    ASSERT_EQ(past.changes.size(), 2U);
    EXPECT_FALSE(past.complete_after);
    const ownership_change& last = past.changes[1];
    EXPECT_EQ(last.lock, "a");
    EXPECT_EQ(last.identity, "alice");
    EXPECT_EQ(last.what, ownership_change::kind::released);
    EXPECT_EQ(last.reason, core::end_reason::expired);
    EXPECT_EQ(last.id.value, 7U);
    EXPECT_EQ(last.at, start + 3s);
    EXPECT_EQ(last.lasted, core::nanoseconds{2s});
    EXPECT_EQ(last.number, 2U);
    EXPECT_TRUE(past_of(all, "c").changes.empty());
}

TEST(ownership_history, a_busy_lock_does_not_push_out_the_others) {
    ownership_history all;
    add(all, "nightly", 4);
    add(all, "busy", 100'000, 1s);
    EXPECT_EQ(past_of(all, "nightly").changes.size(), 4U);
    EXPECT_FALSE(past_of(all, "nightly").complete_after);
    const auto busy = past_of(all, "busy");
    EXPECT_EQ(busy.changes.size(), ownership_history::lock_max);
    EXPECT_EQ(busy.changes.back().number, all.next() - 1);
    EXPECT_EQ(busy.complete_after, busy.changes.front().at - 1us);
}

TEST(ownership_history, of_many_locks_the_oldest_changes_go) {
    ownership_history all;
    constexpr int count = 10'000;
    for (int index = 0; index < count; ++index) {
        add(all, "lock-" + std::to_string(index), 1, index * 1ms);
    }
    const int first = count - static_cast<int>(ownership_history::capacity);
    EXPECT_TRUE(past_of(all, "lock-" + std::to_string(first - 1)).changes.empty());
    EXPECT_EQ(past_of(all, "lock-" + std::to_string(first)).changes.size(), 1U);
    EXPECT_EQ(past_of(all, "anything").complete_after, start + (first - 1) * 1ms);
    // A lock that comes back begins anew, after what was forgotten of it.
    add(all, "lock-0", 1, 1h);
    EXPECT_EQ(past_of(all, "lock-0").changes.size(), 1U);
    EXPECT_EQ(past_of(all, "lock-0").complete_after, start + first * 1ms);
}

TEST(ownership_history, tells_what_is_new) {
    ownership_history all;
    EXPECT_TRUE(all.since(0, 256).empty());
    add(all, "a", 3);
    add(all, "b", 2);
    const auto found = all.since(2, 256);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].lock, "a");
    EXPECT_EQ(found[2].lock, "b");
    EXPECT_EQ(found[0].number, 2U);
    EXPECT_EQ(all.since(0, 2)[0].number, 3U) << "of more, the last";
    EXPECT_TRUE(all.since(all.next(), 256).empty());
}

TEST(ownership_history, long_identities_have_a_bound_of_their_own) {
    ownership_history all;
    const std::string identity(60'000, 'x');
    for (int index = 0; index < 100; ++index) {
        add(all, "lock-" + std::to_string(index), 1, index * 1ms, identity);
    }
    std::size_t kept = 0;
    for (const ownership_change& each : all.since(0, ownership_history::capacity)) {
        kept += each.identity.size();
    }
    EXPECT_LE(kept, ownership_history::identities_max);
    EXPECT_GT(kept, ownership_history::identities_max - 2 * identity.size());
    EXPECT_EQ(past_of(all, "lock-99").changes.size(), 1U);
    EXPECT_TRUE(past_of(all, "lock-9").changes.empty());
    EXPECT_TRUE(past_of(all, "lock-9").complete_after);
    // What was given up is free again for short ones.
    for (int index = 0; index < 10'000; ++index) {
        add(all, std::to_string(index), 1, 1h);
    }
    EXPECT_EQ(all.since(0, 10'000).size(), ownership_history::capacity);
}

TEST(ownership_history, one_identity_over_all_bounds_is_kept_while_it_is_the_newest) {
    ownership_history all;
    add(all, "a", 1, 0ns, std::string(2 * ownership_history::identities_max, 'x'));
    EXPECT_EQ(past_of(all, "a").changes.size(), 1U);
    add(all, "b", 1);
    EXPECT_EQ(past_of(all, "a").changes.size(), 0U);
    EXPECT_EQ(past_of(all, "b").changes.size(), 1U);
}

}  // namespace
}  // namespace monolock::server::admin
