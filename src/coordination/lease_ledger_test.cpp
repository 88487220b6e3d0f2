#include "coordination/lease_ledger.hpp"

#include <gtest/gtest.h>

namespace monolock::coordination {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

time_point at(nanoseconds since_start) {
    return time_point{1h + since_start};
}

lease_report owners(milliseconds adopted, milliseconds longest, milliseconds wanted = 0ms) {
    return {.adopted = adopted, .longest = longest, .wanted = wanted};
}

// A ledger of a term that began with nothing and opened at zero, then granted a lease of 8 s.
lease_ledger with_eight_seconds() {
    lease_ledger ledger{0ms, 60s};
    ledger.opened(at(0s));
    ledger.report(owners(0ms, 0ms, 8s), at(0s));
    ledger.answered(ledger.put(at(0s)));
    return ledger;
}

TEST(lease_ledger, is_raised_before_use_and_counts_when_answered) {
    lease_ledger ledger{0ms, 60s};
    ledger.opened(at(0s));
    EXPECT_FALSE(ledger.wants_more());
    ledger.report(owners(0ms, 0ms, 8s), at(0s));
    EXPECT_TRUE(ledger.wants_more());
    EXPECT_EQ(ledger.put(at(0s)), 8s);
    EXPECT_EQ(ledger.limit(), 0ms) << "not answered yet";
    EXPECT_EQ(ledger.put(at(1s)), 8s) << "and again";
    ledger.answered(8s);
    EXPECT_EQ(ledger.limit(), 8s);
    EXPECT_EQ(ledger.recorded(), 8s);
    EXPECT_FALSE(ledger.wants_more());
}

TEST(lease_ledger, is_lowered_when_the_owner_can_believe_no_more_and_all_shards_keep_to_it) {
    lease_ledger ledger = with_eight_seconds();
    ledger.report(owners(8s, 8s), at(1s));
    EXPECT_EQ(ledger.put(at(8s)), 8s);
    EXPECT_EQ(ledger.limit(), 8s) << "it may believe until 9 s";
    EXPECT_EQ(ledger.put(at(9s)), 8s) << "first the shards are told";
    EXPECT_EQ(ledger.limit(), 0ms);
    ledger.answered(8s);
    EXPECT_EQ(ledger.limit(), 0ms) << "nor does the answer to that renewal raise it again";
    EXPECT_EQ(ledger.put(at(9s)), 8s);
    ledger.report(owners(8s, 0ms), at(9s));
    EXPECT_EQ(ledger.put(at(9s)), 8s) << "one of them was not told yet";
    ledger.report(owners(0ms, 0ms), at(9s));
    EXPECT_EQ(ledger.put(at(9s)), 0ms);
    EXPECT_EQ(ledger.recorded(), 0ms) << "whatever becomes of that renewal";
    ledger.answered(8s);  // an older one's
    EXPECT_EQ(ledger.recorded(), 8s);
}

TEST(lease_ledger, an_owner_that_came_while_the_shards_were_told_counts) {
    lease_ledger ledger = with_eight_seconds();
    EXPECT_EQ(ledger.put(at(1s)), 8s) << "the claim still wants it";
    ledger.report(owners(8s, 0ms), at(1s));
    EXPECT_EQ(ledger.put(at(1s)), 8s);
    EXPECT_EQ(ledger.limit(), 0ms);
    ledger.report(owners(0ms, 8s), at(2s));
    EXPECT_EQ(ledger.put(at(2s)), 8s);
    EXPECT_EQ(ledger.limit(), 0ms) << "nobody else is granted as long a lease";
    EXPECT_EQ(ledger.put(at(9s)), 8s);
    EXPECT_EQ(ledger.put(at(10s)), 8s);
    ledger.report(owners(0ms, 0ms), at(10s));
    EXPECT_EQ(ledger.put(at(10s)), 0ms);
}

TEST(lease_ledger, what_the_store_has_already_is_given_without_a_renewal) {
    lease_ledger ledger = with_eight_seconds();
    ledger.report(owners(8s, 0ms), at(1s));
    EXPECT_EQ(ledger.put(at(1s)), 8s);
    EXPECT_EQ(ledger.limit(), 0ms);
    ledger.report(owners(0ms, 0ms, 5s), at(2s));
    EXPECT_FALSE(ledger.wants_more());
    EXPECT_EQ(ledger.limit(), 8s);
    EXPECT_EQ(ledger.put(at(2s)), 8s);
    EXPECT_EQ(ledger.limit(), 5s);
}

TEST(lease_ledger, a_claim_that_comes_when_all_shards_keep_to_less_ends_the_lowering) {
    lease_ledger ledger = with_eight_seconds();
    ledger.report(owners(8s, 0ms), at(1s));
    EXPECT_EQ(ledger.put(at(1s)), 8s);
    ledger.report(owners(0ms, 0ms), at(2s));
    ledger.report(owners(0ms, 0ms, 5s), at(3s));
    EXPECT_EQ(ledger.limit(), 8s);
    EXPECT_EQ(ledger.put(at(3s)), 8s);
    EXPECT_EQ(ledger.limit(), 5s) << "which begins anew, with what is wanted now";
}

TEST(lease_ledger, is_lowered_step_by_step_and_each_step_is_told_to_the_shards_first) {
    lease_ledger ledger = with_eight_seconds();
    ledger.report(owners(8s, 0ms), at(1s));
    EXPECT_EQ(ledger.put(at(1s)), 8s);
    ledger.report(owners(0ms, 5s), at(2s));  // granted before they were told
    ledger.report(owners(0ms, 0ms), at(3s));
    EXPECT_EQ(ledger.put(at(3s)), 8s) << "that one may believe until 7 s";
    EXPECT_EQ(ledger.limit(), 5s);
    EXPECT_EQ(ledger.put(at(3s)), 8s);
    ledger.report(owners(5s, 0ms), at(4s));
    EXPECT_EQ(ledger.put(at(4s)), 5s);
    EXPECT_EQ(ledger.put(at(7s)), 5s);
    EXPECT_EQ(ledger.limit(), 0ms);
    ledger.report(owners(0ms, 0ms), at(7s));
    EXPECT_EQ(ledger.put(at(7s)), 0ms);
}

TEST(lease_ledger, keeps_what_it_inherited_until_that_long_after_it_opened) {
    lease_ledger ledger{8s, 60s};
    EXPECT_EQ(ledger.limit(), 8s);
    EXPECT_EQ(ledger.put(at(100s)), 8s) << "it has not opened";
    ledger.opened(at(100s));
    EXPECT_EQ(ledger.put(at(108s - 1ns)), 8s);
    EXPECT_EQ(ledger.limit(), 8s);
    EXPECT_EQ(ledger.put(at(108s)), 8s);
    EXPECT_EQ(ledger.limit(), 0ms);
}

TEST(lease_ledger, longer_leases_than_are_covered_count_as_of_that_length) {
    lease_ledger ledger{0ms, 10s};
    ledger.opened(at(0s));
    ledger.report(owners(0ms, 0ms, 3600s), at(0s));
    EXPECT_EQ(ledger.put(at(0s)), 10s);
    ledger.answered(10s);
    EXPECT_EQ(ledger.limit(), milliseconds::max()) << "all may be granted";
    ledger.report(owners(milliseconds::max(), 3600s), at(1s));
    EXPECT_EQ(ledger.put(at(11s - 1ns)), 10s);
    EXPECT_EQ(ledger.put(at(11s)), 10s);
    EXPECT_EQ(ledger.limit(), 0ms);
}

TEST(lease_ledger, an_inherited_value_that_makes_no_sense_breaks_nothing) {
    EXPECT_EQ(lease_ledger(-5s, 60s).recorded(), 0ms);
    lease_ledger ledger{milliseconds::max(), 60s};
    EXPECT_EQ(ledger.recorded().count(), 0xFFFF'FFFF);
    ledger.opened(at(0s));
    EXPECT_EQ(ledger.put(at(1s)).count(), 0xFFFF'FFFF);
}

TEST(lease_ledger, a_longer_lease_hides_the_shorter_ones_before_it) {
    lease_ledger ledger = with_eight_seconds();
    ledger.report(owners(8s, 5s), at(1s));
    ledger.report(owners(8s, 8s), at(2s));
    static_cast<void>(ledger.put(at(5s)));
    EXPECT_EQ(ledger.limit(), 8s);
    static_cast<void>(ledger.put(at(10s - 1ns)));
    EXPECT_EQ(ledger.limit(), 8s);
    static_cast<void>(ledger.put(at(10s)));
    EXPECT_EQ(ledger.limit(), 0ms);
}

TEST(lease_ledger, who_is_reported_again_and_again_takes_one_place) {
    lease_ledger ledger = with_eight_seconds();
    for (int second = 1; second <= 20; ++second) {
        ledger.report(owners(8s, 8s), at(second * 1s));
    }
    ledger.report(owners(8s, 5s), at(24s));
    static_cast<void>(ledger.put(at(28s)));
    EXPECT_EQ(ledger.limit(), 5s) << "until 29 s; the longer one is over";
}

// Each believes for longer than the one before, and there is no place for the last of them.
TEST(lease_ledger, forgets_nobody_however_many_fall_one_after_the_other) {
    lease_ledger ledger{0ms, 60s};
    ledger.opened(at(0s));
    ledger.report(owners(0ms, 0ms, 60s), at(0s));
    ledger.answered(ledger.put(at(0s)));
    for (int step = 1; step <= 30; ++step) {
        ledger.report(owners(milliseconds::max(), (60 - step) * 1s), at(2 * step * 1s));
    }
    const auto limit_at = [&ledger](nanoseconds time) {
        static_cast<void>(ledger.put(at(time)));
        return ledger.limit();
    };
    EXPECT_EQ(limit_at(61s - 1ns), milliseconds{59s});
    EXPECT_EQ(limit_at(61s), milliseconds{58s});
    EXPECT_EQ(limit_at(75s), milliseconds{44s}) << "the sixteenth stands for all behind it";
    EXPECT_EQ(limit_at(90s - 1ns), milliseconds{44s});
    EXPECT_EQ(limit_at(90s), 0ms);
}

}  // namespace
}  // namespace monolock::coordination
