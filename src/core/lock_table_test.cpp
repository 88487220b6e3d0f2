#include "core/lock_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "support/journal.hpp"
#include "support/scripted_ports.hpp"

namespace monolock::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using support::lines;

constexpr milliseconds lease_max{0xFFFFFFFF};

// A table and sessions 1, 2, 3, … Each event returns the facts that it caused.
class lock_table_test : public testing::Test {
protected:
    ~lock_table_test() override {
        while (session* const left = table_.any_session()) {
            table_.end(*left, end_reason::graceful, now_, facts_);
        }
    }

    session& at(std::uint64_t id) {
        while (sessions_.size() < id) {
            sessions_.emplace_back(session_id{sessions_.size() + 1});
        }
        return sessions_[id - 1];
    }

    lines acquire(std::uint64_t id, const std::string& name = "nightly", milliseconds lease = 10s) {
        table_.acquire(at(id), name, hash_(name), lease, now_, facts_);
        return happened();
    }
    lines heartbeat(std::uint64_t id) {
        table_.heartbeat(at(id), now_, facts_);
        return happened();
    }
    lines end(std::uint64_t id, end_reason why = end_reason::graceful) {
        table_.end(at(id), why, now_, facts_);
        return happened();
    }
    // Expires all whose lease has passed.
    lines expire() {
        while (session* const suspect = table_.suspect(now_)) {
            table_.expire(*suspect, now_, facts_);
        }
        return happened();
    }
    void pass(nanoseconds time) { now_ += time; }

    const named_lock* find(const std::string& name) const { return table_.find(name, hash_(name)); }
    std::vector<std::uint64_t> queue_of(const std::string& name) const {
        std::vector<std::uint64_t> ids;
        for (const session& waiter : find(name)->waiters) {
            ids.push_back(waiter.id().value);
        }
        return ids;
    }

    lines happened() {
        table_.check_invariants();
        const lines texts = support::texts_of(facts_);
        facts_.clear();
        return texts;
    }

    std::deque<session> sessions_;
    time_point now_{1h};
    fact_list facts_;
    support::scripted_tokens tokens_;
    name_hasher hash_{name_hasher::key{}};
    lock_table table_{tokens_};
};

TEST_F(lock_table_test, grants_a_free_lock_at_once) {
    EXPECT_EQ(acquire(1), (lines{"granted(#1, token 1, waited 0 ns)"}));
    EXPECT_EQ(at(1).state(), session_state::owning);
    EXPECT_EQ(at(1).token().value, 1U);
    EXPECT_EQ(at(1).lock_name(), "nightly");
    EXPECT_EQ(at(1).lock_hash(), hash_("nightly"));
    EXPECT_EQ(at(1).lease(), 10s);
    EXPECT_EQ(at(1).since(), now_);
}

TEST_F(lock_table_test, serves_waiters_in_the_order_of_their_claims) {
    acquire(1);
    pass(1ns);
    EXPECT_EQ(acquire(2), (lines{"queued(#2)"}));
    pass(1ns);
    EXPECT_EQ(acquire(3), (lines{"queued(#3)"}));
    EXPECT_EQ(at(2).token().value, 0U);
    pass(10ns);
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was owning for 12 ns)",
                             "granted(#2, token 2, waited 11 ns)"}));
    EXPECT_EQ(acquire(4), (lines{"queued(#4)"}));
    pass(5ns);
    EXPECT_EQ(end(2, end_reason::force), (lines{"ended(#2, force, was owning for 5 ns)",
                                                "granted(#3, token 3, waited 15 ns)"}));
    EXPECT_EQ(end(3, end_reason::io_timeout), (lines{"ended(#3, io_timeout, was owning for 0 ns)",
                                                     "granted(#4, token 4, waited 5 ns)"}));
    EXPECT_EQ(end(4), (lines{"ended(#4, graceful, was owning for 0 ns)"}));
}

TEST_F(lock_table_test, lets_a_waiter_leave_from_the_middle) {
    for (std::uint64_t id = 1; id <= 5; ++id) {
        acquire(id);
    }
    pass(3ns);
    EXPECT_EQ(end(3), (lines{"ended(#3, graceful, was waiting for 3 ns)"}));
    EXPECT_EQ(queue_of("nightly"), (std::vector<std::uint64_t>{2, 4, 5}));
    EXPECT_EQ(end(2), (lines{"ended(#2, graceful, was waiting for 3 ns)"}));
    EXPECT_EQ(end(5), (lines{"ended(#5, graceful, was waiting for 3 ns)"}));
    EXPECT_EQ(end(1).back(), "granted(#4, token 2, waited 3 ns)");
}

TEST_F(lock_table_test, answers_heartbeats_with_the_state_of_the_moment) {
    acquire(1);
    acquire(2);
    pass(1s);
    EXPECT_EQ(heartbeat(1), (lines{"acknowledged(#1, owning, token 1)"}));
    EXPECT_EQ(heartbeat(2), (lines{"acknowledged(#2, waiting, token 0)"}));
    EXPECT_EQ(at(2).last_seen(), now_);
    end(1);
    EXPECT_EQ(heartbeat(2), (lines{"acknowledged(#2, owning, token 2)"}));
}

// After a pause all sessions are due at once, and most of them have beaten.
TEST_F(lock_table_test, looks_at_no_more_sessions_than_it_is_told) {
    for (std::uint64_t id = 1; id <= 10; ++id) {
        acquire(id, std::to_string(id));
    }
    pass(9s);
    for (std::uint64_t id = 1; id <= 10; ++id) {
        heartbeat(id);
    }
    pass(2s);
    std::size_t looks = 4;
    EXPECT_EQ(table_.suspect(now_, looks), nullptr);
    EXPECT_EQ(looks, 0U);
    EXPECT_LT(*table_.next_deadline(), now_) << "six are left";
    looks = 100;
    EXPECT_EQ(table_.suspect(now_, looks), nullptr);
    EXPECT_EQ(looks, 94U);
    EXPECT_GT(*table_.next_deadline(), now_);
    pass(10s);
    looks = 1;
    EXPECT_NE(table_.suspect(now_, looks), nullptr);
    EXPECT_EQ(looks, 0U) << "a suspect was looked at, too";
}

TEST_F(lock_table_test, keeps_a_name_in_no_more_than_it_needs) {
    const std::string name = "a name of 20 letters";
    acquire(1, name);
    EXPECT_EQ(find(name)->name.capacity(), name.size());
}

TEST_F(lock_table_test, keeps_names_apart_byte_for_byte) {
    const std::vector<std::string> names{"a",
                                         "a/",
                                         "a/b",
                                         "ab",
                                         "A",
                                         "a ",
                                         " a",
                                         std::string{"a\0", 2},
                                         "a\n",
                                         "\xC3\xA9",   // é, composed
                                         "e\xCC\x81",  // é, decomposed
                                         std::string(255, 'x'),
                                         std::string(254, 'x'),
                                         std::string(254, 'x') + "y"};
    for (std::uint64_t id = 1; id <= names.size(); ++id) {
        EXPECT_EQ(acquire(id, names[id - 1]).front().substr(0, 7), "granted") << names[id - 1];
        EXPECT_EQ(at(id).lock_name(), names[id - 1]);
    }
    EXPECT_EQ(table_.lock_count(), names.size());
    EXPECT_EQ(acquire(20, std::string(255, 'x')), (lines{"queued(#20)"}));
}

// Two names with one hash are still two locks.
TEST_F(lock_table_test, compares_names_and_not_only_hashes) {
    for (std::uint64_t id = 1; id <= 100; ++id) {
        table_.acquire(at(id), "job" + std::to_string(id), name_hash{7}, 10s, now_, facts_);
    }
    happened();
    EXPECT_EQ(table_.lock_count(), 100U);
    EXPECT_EQ(table_.find("job50", name_hash{7})->owner, &at(50));
}

TEST_F(lock_table_test, forgets_a_lock_that_nobody_uses) {
    EXPECT_EQ(find("nightly"), nullptr);
    acquire(1);
    acquire(2);
    ASSERT_NE(find("nightly"), nullptr);
    EXPECT_EQ(table_.session_count(), 2U);
    end(1);
    end(2);
    EXPECT_EQ(find("nightly"), nullptr);
    EXPECT_EQ(table_.lock_count(), 0U);
    EXPECT_EQ(table_.session_count(), 0U);
    // No history: the next claim finds a lock like a new one.
    EXPECT_EQ(acquire(3), (lines{"granted(#3, token 3, waited 0 ns)"}));
}

TEST_F(lock_table_test, facts_can_name_a_lock_that_was_just_forgotten) {
    acquire(1, "short-lived");
    end(1);
    EXPECT_EQ(at(1).lock_name(), "short-lived");
}

TEST_F(lock_table_test, expires_one_nanosecond_after_the_lease_and_not_before) {
    for (const milliseconds lease : {1ms, milliseconds{10s}, lease_max}) {
        const std::uint64_t id = sessions_.size() + 1;
        acquire(id, "nightly", lease);
        pass(lease);
        EXPECT_EQ(table_.suspect(now_), nullptr) << lease.count() << " ms";
        EXPECT_EQ(table_.next_deadline(), now_ + 1ns);
        pass(1ns);
        EXPECT_EQ(table_.suspect(now_), &at(id)) << lease.count() << " ms";
        EXPECT_EQ(expire().size(), 1U);
    }
}

TEST_F(lock_table_test, a_heartbeat_begins_the_lease_anew) {
    acquire(1, "nightly", 100ms);
    for (int beat = 0; beat < 10; ++beat) {
        pass(100ms);
        EXPECT_EQ(expire(), lines{});
        heartbeat(1);
    }
    pass(100ms);
    EXPECT_EQ(table_.suspect(now_), nullptr);
    pass(1ns);
    EXPECT_EQ(expire(), (lines{"ended(#1, expired, was owning for 1100000001 ns)"}));
}

// Many waiters that died together cost one lease together (case S1).
TEST_F(lock_table_test, sessions_expire_in_parallel) {
    acquire(1, "nightly", 60s);
    for (std::uint64_t id = 2; id <= 6; ++id) {
        acquire(id, "nightly", 5s);
    }
    acquire(7, "nightly", 60s);
    pass(5s + 1ns);
    EXPECT_EQ(expire().size(), 5U);
    EXPECT_EQ(queue_of("nightly"), std::vector<std::uint64_t>{7});
}

TEST_F(lock_table_test, expiring_the_owner_promotes_and_judges_afterwards) {
    acquire(1, "nightly", 1s);
    acquire(2, "nightly", 1s);  // as silent as the owner
    acquire(3, "nightly", 10s);
    pass(1s + 1ns);
    session* const first = table_.suspect(now_);
    ASSERT_EQ(first, &at(1));
    table_.expire(*first, now_, facts_);
    EXPECT_EQ(happened(), (lines{"ended(#1, expired, was owning for 1000000001 ns)",
                                 "granted(#2, token 2, waited 1000000001 ns)"}));
    EXPECT_EQ(expire(), (lines{"ended(#2, expired, was owning for 0 ns)",
                               "granted(#3, token 3, waited 1000000001 ns)"}));
}

TEST_F(lock_table_test, next_deadline_is_never_later_than_the_true_one) {
    EXPECT_EQ(table_.next_deadline(), std::nullopt);
    acquire(1, "a", 10s);
    EXPECT_EQ(table_.next_deadline(), now_ + 10s + 1ns);
    acquire(2, "b", 3s);
    EXPECT_EQ(table_.next_deadline(), now_ + 3s + 1ns);
    pass(2s);
    heartbeat(2);  // may be armed early, must not be late
    EXPECT_LE(table_.next_deadline(), now_ + 3s + 1ns);
    pass(2s);
    EXPECT_EQ(table_.suspect(now_), nullptr);  // here the heartbeat is paid for
    EXPECT_EQ(table_.next_deadline(), now_ + 1s + 1ns);
    end(2);
    EXPECT_EQ(table_.next_deadline(), now_ + 6s + 1ns);
}

TEST_F(lock_table_test, withheld_grants_leave_locks_without_an_owner) {
    acquire(1);
    acquire(2);
    table_.withhold_grants();
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was owning for 0 ns)"}));
    EXPECT_EQ(find("nightly")->owner, nullptr);
    EXPECT_EQ(acquire(3), (lines{"queued(#3)"}));
    EXPECT_EQ(acquire(4, "fresh"), (lines{"queued(#4)"}));
    EXPECT_EQ(heartbeat(2), (lines{"acknowledged(#2, waiting, token 0)"}));
    end(2);
    end(3);
    EXPECT_EQ(find("nightly"), nullptr);
}

TEST_F(lock_table_test, any_session_finds_all_of_them) {
    EXPECT_EQ(table_.any_session(), nullptr);
    for (std::uint64_t id = 1; id <= 10; ++id) {
        acquire(id, id % 2 == 0 ? "even" : "odd");
    }
    for (std::size_t left = 10; left > 0; --left) {
        ASSERT_NE(table_.any_session(), nullptr);
        EXPECT_EQ(table_.session_count(), left);
        end(table_.any_session()->id().value);
    }
    EXPECT_EQ(table_.any_session(), nullptr);
}

// What only a mistake of ours can break ends the process (style: invariants 1 to 7).
TEST_F(lock_table_test, a_walk_downwards_meets_every_lock_that_stays) {
    constexpr std::uint64_t count = 200;
    for (std::uint64_t id = 1; id <= count; ++id) {
        acquire(id, "stays-" + std::to_string(id));
    }
    // One lock at a time, and between any two of them others come and go.
    std::set<std::string> met;
    std::uint64_t next = count;
    std::uint64_t goes = 1;
    for (std::size_t place = table_.lock_count(); place > 0;) {
        place = std::min(place, table_.lock_count());
        met.insert(table_.at(--place).name);
        ++next;
        acquire(next, "comes-" + std::to_string(next));
        if (next % 2 == 0) {
            end(next);
        }
        if (goes < count) {
            end(goes);
            goes += 3;
        }
    }
    for (std::uint64_t id = 1; id <= count; ++id) {
        if (at(id).state() == session_state::owning) {
            EXPECT_TRUE(met.contains("stays-" + std::to_string(id))) << id;
        }
    }
}

TEST_F(lock_table_test, finds_a_waiter_in_the_middle) {
    acquire(1);
    acquire(2);
    acquire(3);
    const auto find = [&](std::uint64_t id, const std::string& name = "nightly") {
        return table_.find_waiter(name, hash_(name),
                                  [id](const session& who) { return who.id().value == id; });
    };
    EXPECT_EQ(find(3), &at(3));
    EXPECT_EQ(find(1), nullptr) << "an owner is no waiter";
    EXPECT_EQ(find(2, "other"), nullptr);
}

// --- the token source refuses

class lock_table_refused_test : public lock_table_test {
protected:
    // All idle locks once.
    lines retry() {
        for (std::size_t left = table_.idle_count(); left > 0; --left) {
            table_.retry_grant(now_, facts_);
        }
        return happened();
    }
};

TEST_F(lock_table_refused_test, a_claim_queues_and_is_granted_when_the_source_gives_a_token) {
    tokens_.refuse_above(0s);
    EXPECT_EQ(acquire(1), (lines{"queued(#1)"}));
    EXPECT_EQ(acquire(2), (lines{"queued(#2)"}));
    EXPECT_EQ(table_.idle_count(), 1U);
    pass(3ns);
    EXPECT_EQ(retry(), lines{});
    EXPECT_EQ(heartbeat(1), (lines{"acknowledged(#1, waiting, token 0)"}));
    tokens_.refuse_above(lease_max);
    EXPECT_EQ(retry(), (lines{"granted(#1, token 1, waited 3 ns)"}));
    EXPECT_EQ(table_.idle_count(), 0U);
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was owning for 0 ns)",
                             "granted(#2, token 2, waited 3 ns)"}));
}

TEST_F(lock_table_refused_test, a_lock_whose_owner_ends_is_idle_until_then) {
    acquire(1);
    acquire(2);
    tokens_.refuse_above(0s);
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was owning for 0 ns)"}));
    EXPECT_EQ(find("nightly")->owner, nullptr);
    EXPECT_EQ(acquire(3), (lines{"queued(#3)"})) << "nobody is overtaken";
    tokens_.refuse_above(lease_max);
    EXPECT_EQ(acquire(4), (lines{"queued(#4)"})) << "nobody is overtaken";
    EXPECT_EQ(retry(), (lines{"granted(#2, token 2, waited 0 ns)"}));
    EXPECT_EQ(queue_of("nightly"), (std::vector<std::uint64_t>{3, 4}));
}

TEST_F(lock_table_refused_test, a_refused_head_is_not_overtaken_and_other_locks_go_on) {
    tokens_.refuse_above(10s);
    acquire(1, "nightly", 11s);
    EXPECT_EQ(acquire(2), (lines{"queued(#2)"}));
    EXPECT_EQ(acquire(3, "other"), (lines{"granted(#3, token 1, waited 0 ns)"}));
    acquire(4, "third", 12s);
    EXPECT_EQ(retry(), lines{});
    tokens_.refuse_above(11s);
    EXPECT_EQ(retry(), (lines{"granted(#1, token 2, waited 0 ns)"}));
    EXPECT_EQ(table_.idle_count(), 1U);
}

TEST_F(lock_table_refused_test, who_stands_behind_a_refused_head_that_leaves_is_granted) {
    tokens_.refuse_above(10s);
    acquire(1, "nightly", 11s);
    acquire(2, "nightly", 12s);
    acquire(3);
    EXPECT_EQ(end(2), (lines{"ended(#2, graceful, was waiting for 0 ns)"})) << "from the middle";
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was waiting for 0 ns)",
                             "granted(#3, token 1, waited 0 ns)"}));
    EXPECT_EQ(table_.idle_count(), 0U);
}

TEST_F(lock_table_refused_test, an_idle_lock_whose_last_waiter_leaves_is_gone) {
    tokens_.refuse_above(0s);
    acquire(1);
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was waiting for 0 ns)"}));
    EXPECT_EQ(table_.idle_count(), 0U);
    EXPECT_EQ(table_.lock_count(), 0U);
    acquire(2);
    pass(10s + 1ns);
    EXPECT_EQ(expire(), (lines{"ended(#2, expired, was waiting for 10000000001 ns)"}));
    EXPECT_EQ(table_.idle_count(), 0U);
}

TEST_F(lock_table_refused_test, the_longest_refused_is_asked_for_first) {
    tokens_.refuse_above(0s);
    acquire(1, "a");
    acquire(2, "b");
    acquire(3, "c");
    table_.retry_grant(now_, facts_);  // refused: now the last
    tokens_.refuse_above(lease_max);
    EXPECT_EQ(retry(),
              (lines{"granted(#2, token 1, waited 0 ns)", "granted(#3, token 2, waited 0 ns)",
                     "granted(#1, token 3, waited 0 ns)"}));
}

TEST_F(lock_table_refused_test, withheld_grants_are_withheld_from_idle_locks_too) {
    tokens_.refuse_above(0s);
    acquire(1);
    acquire(2);
    table_.withhold_grants();
    tokens_.refuse_above(lease_max);
    EXPECT_EQ(retry(), lines{}) << "its time may come while the server goes";
    EXPECT_EQ(end(1), (lines{"ended(#1, graceful, was waiting for 0 ns)"}));
    EXPECT_EQ(end(2), (lines{"ended(#2, graceful, was waiting for 0 ns)"}));
    table_.grant_again();
    EXPECT_EQ(acquire(3), (lines{"granted(#3, token 1, waited 0 ns)"}));
}

using lock_table_death_test = lock_table_test;

TEST_F(lock_table_death_test, granting_again_over_sessions_that_were_there_before) {
    acquire(1);
    table_.withhold_grants();
    EXPECT_DEATH(table_.grant_again(), "places_.empty");
}

TEST_F(lock_table_death_test, a_token_that_does_not_grow) {
    tokens_.rewind_to(99);
    acquire(1, "a");
    tokens_.rewind_to(99);
    EXPECT_DEATH(acquire(2, "b"), "token > last_token_");
    tokens_.rewind_to(5);
    EXPECT_DEATH(acquire(3, "c"), "token > last_token_");
}

TEST_F(lock_table_death_test, expiring_a_session_whose_lease_runs) {
    acquire(1);
    pass(10s);
    EXPECT_DEATH(table_.expire(at(1), now_, facts_), "deadline");
}

TEST_F(lock_table_death_test, a_session_used_twice_or_after_its_end) {
    EXPECT_DEATH(heartbeat(1), "state_");
    acquire(1);
    EXPECT_DEATH(acquire(1, "other"), "fresh");
    end(1);
    EXPECT_DEATH(end(1), "was == ");
    EXPECT_DEATH(heartbeat(1), "state_");
    EXPECT_DEATH(acquire(1), "fresh");
}

// It would be cut to 32 bits, and the session would expire early.
TEST_F(lock_table_death_test, a_lease_that_no_acquire_can_ask_for) {
    EXPECT_DEATH(acquire(1, "nightly", lease_max + 1ms), "lease");
    EXPECT_DEATH(acquire(1, "nightly", -1ms), "lease");
}

TEST_F(lock_table_death_test, a_table_that_goes_before_its_sessions) {
    EXPECT_DEATH(
        {
            session left{session_id{1}};
            lock_table table{tokens_};
            table.acquire(left, "nightly", hash_("nightly"), 10s, now_, facts_);
        },
        "deadlines_.empty()");
}

TEST_F(lock_table_death_test, check_invariants_finds_what_is_broken) {
    acquire(1);
    acquire(2);
    acquire(3, "other");
    // The table hands out its locks to read; only a cast gets at them.
    auto& lock = const_cast<named_lock&>(*find("nightly"));
    EXPECT_DEATH((lock.owner = nullptr, table_.check_invariants()), "in_idle.is_linked");
    EXPECT_DEATH((lock.owner = &at(3), table_.check_invariants()), "owner->lock_ == &lock");
    EXPECT_DEATH((lock.owner = &at(2), table_.check_invariants()), "owner->state_");
    EXPECT_DEATH((lock.waiters.pop_front(), table_.check_invariants()), "sessions_in_locks");
}

}  // namespace
}  // namespace monolock::core
