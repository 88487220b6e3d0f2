#include "server/shard_counters.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "core/lock_table.hpp"
#include "support/scripted_ports.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

// A lock table whose facts are counted, as in a shard.
class shard_counters_test : public testing::Test {
protected:
    ~shard_counters_test() override {
        while (core::session* const left = table_.any_session()) {
            end(*left, core::end_reason::graceful);
        }
    }

    core::session& claim(std::string_view name) {
        core::session& made = sessions_.emplace_back(core::session_id{sessions_.size() + 1});
        table_.acquire(made, name, hash_(name), 10s, clock_.now(), facts_);
        deliver();
        return made;
    }
    void beat(core::session& who) {
        table_.heartbeat(who, clock_.now(), facts_);
        deliver();
    }
    // The frames that this causes take `handover` to write.
    void end(core::session& who, core::end_reason why, core::nanoseconds handover = 0ns) {
        table_.end(who, why, clock_.now(), facts_);
        clock_.advance(handover);
        deliver();
    }

    support::scripted_clock clock_;
    shard_counters counters_;

private:
    void deliver() {
        for (const core::fact& each : facts_) {
            counters_.take(each, table_.session_count(), clock_);
        }
        facts_.clear();
    }

    support::scripted_tokens tokens_;
    core::name_hasher hash_{{}};
    std::deque<core::session> sessions_;
    core::fact_list facts_;
    core::lock_table table_{tokens_};
};

TEST_F(shard_counters_test, sessions_and_locks_come_and_go) {
    core::session& owner = claim("a");
    core::session& waiter = claim("a");
    core::session& other = claim("b");
    EXPECT_EQ(counters_.sessions(), 3U);
    EXPECT_EQ(counters_.locks_held(), 2U);
    end(owner, core::end_reason::graceful);  // the waiter owns now
    EXPECT_EQ(counters_.sessions(), 2U);
    EXPECT_EQ(counters_.locks_held(), 2U);
    end(waiter, core::end_reason::graceful);
    end(other, core::end_reason::graceful);
    EXPECT_EQ(counters_.sessions(), 0U);
    EXPECT_EQ(counters_.locks_held(), 0U);
}

TEST_F(shard_counters_test, every_message_after_the_first_is_a_heartbeat) {
    core::session& owner = claim("a");
    core::session& waiter = claim("a");
    beat(owner);
    beat(waiter);
    beat(owner);
    EXPECT_EQ(counters_.heartbeats(), 3U);
}

TEST_F(shard_counters_test, waits_count_every_grant_and_holds_every_ownership) {
    core::session& owner = claim("a");
    core::session& waiter = claim("a");
    core::session& leaves = claim("a");
    clock_.advance(2s);
    end(leaves, core::end_reason::expired);  // never owned: neither
    clock_.advance(1s);
    end(owner, core::end_reason::force);
    clock_.advance(4s);
    end(waiter, core::end_reason::io_timeout);
    EXPECT_EQ(counters_.waits().read().count(), 2U);
    EXPECT_DOUBLE_EQ(counters_.waits().read().sum.count(), 3.0);
    EXPECT_EQ(counters_.holds().read().count(), 2U);
    EXPECT_DOUBLE_EQ(counters_.holds().read().sum.count(), 7.0);
    EXPECT_EQ(counters_.releases(core::end_reason::force), 1U);
    EXPECT_EQ(counters_.releases(core::end_reason::io_timeout), 1U);
    EXPECT_EQ(counters_.releases(core::end_reason::graceful), 0U);
    EXPECT_EQ(counters_.releases(core::end_reason::expired), 0U);
}

TEST_F(shard_counters_test, a_handover_is_a_promotion_and_lasts_until_the_frame_is_written) {
    core::session& owner = claim("a");
    claim("a");
    EXPECT_EQ(counters_.handovers().read().count(), 0U) << "a grant at once hands nothing over";
    clock_.advance(1s);
    end(owner, core::end_reason::graceful, 40us);
    EXPECT_EQ(counters_.handovers().read().count(), 1U);
    EXPECT_DOUBLE_EQ(counters_.handovers().read().sum.count(), 40e-6);
}

TEST_F(shard_counters_test, errors_are_counted_by_code) {
    counters_.error_due(protocol::error_code::duplicate_acquire);
    counters_.error_due(protocol::error_code::not_authorized);
    counters_.error_due(protocol::error_code::duplicate_acquire);
    for (std::size_t index = 0; index < error_codes.size(); ++index) {
        const std::uint64_t expected =
            error_codes[index] == protocol::error_code::duplicate_acquire ? 2U
            : error_codes[index] == protocol::error_code::not_authorized  ? 1U
                                                                          : 0U;
        EXPECT_EQ(counters_.errors(index), expected) << index;
    }
}

}  // namespace
}  // namespace monolock::server
