#include "coordination/role_machine.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "support/role_dialogue.hpp"

namespace monolock::coordination {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// ---- losing the key

TEST_F(role_dialogue, not_its_key_in_a_transaction_is_a_loss_at_once) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    EXPECT_EQ(hears(1010ms, renewed{false, {}, somebody({20}, {20}, 0)}), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::key_taken);
    EXPECT_EQ(subject.last_loss(), "another server has the key: b");

    role_machine other{options};
    subject = std::move(other);
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    EXPECT_EQ(hears(1010ms, renewed{false, {}, {}}), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::key_gone);
}

TEST_F(role_dialogue, a_keepalive_without_a_ttl_is_a_loss_and_one_with_proves_nothing) {
    opens();
    leave_keepalive(1s);
    EXPECT_EQ(hears(1100ms, lease_kept{4s}), role::active);
    EXPECT_EQ(subject.deadline(), at(3201ms));
    renews(1101ms, {12});
    leave_keepalive(2s);
    EXPECT_EQ(hears(2001ms, failed{"refused"}), role::active);
    renews(2101ms, {13});
    leave_keepalive(3s);
    EXPECT_EQ(hears(3001ms, lease_kept{0s}), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::lease_gone);
}

TEST_F(role_dialogue, a_loss_before_it_opened_needs_no_stepping_down) {
    wins(0ms, state_of({5}, 3));
    asks<renew>(1ms);
    EXPECT_EQ(hears(2ms, renewed{false, {}, {}}), role::standby);
    EXPECT_FALSE(subject.next_event());
    EXPECT_EQ(subject.last_loss(), "the key is gone");
    asks<look>(2ms);
}

TEST_F(role_dialogue, a_second_is_a_ttl_that_a_lease_may_have) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    hears(0ms, lease_granted{lease_of_mine, 0s});
    EXPECT_EQ(subject.store_errors(), 1U);
    asks<revoke_lease>(0ms);
    asks<grant_lease>(500ms);
    hears(500ms, lease_granted{{78}, 1s});
    asks<campaign>(500ms);
    hears(500ms, campaigned{true, {10}, {}, {}});
    asks<renew>(500ms);
    asks<keep_lease_alive>(750ms);
    EXPECT_EQ(hears(751ms, lease_kept{1s}), role::waiting);
    EXPECT_EQ(subject.store_errors(), 1U);
    asks<keep_lease_alive>(1s);
    EXPECT_EQ(hears(1001ms, failed{"refused"}), role::waiting);
    EXPECT_EQ(subject.store_errors(), 2U);
}

TEST_F(role_dialogue, another_in_its_place_is_looked_into_at_once) {
    opens();
    EXPECT_EQ(sees(10ms, active_put{somebody({9}, {9}, 3)}), role::active) << "its predecessor";
    asks_nothing(10ms);
    EXPECT_EQ(sees(20ms, active_put{somebody({9}, {11}, 3)}), role::active) << "no news either";
    asks_nothing(20ms);
    EXPECT_EQ(sees(30ms, active_put{somebody({20}, {20}, 0)}), role::active);
    EXPECT_EQ(subject.holder(), "a") << "a transaction decides";
    asks<renew>(30ms);
}

TEST_F(role_dialogue, what_the_watch_tells_of_its_key_brings_a_transaction_forward_and_no_more) {
    opens();
    EXPECT_EQ(sees(10ms, active_deleted{{9}}), role::active) << "from before its own term";
    asks_nothing(10ms);
    EXPECT_EQ(sees(20ms, active_put{somebody({10}, {11}, 1)}), role::active) << "its own";
    asks_nothing(20ms);
    EXPECT_EQ(sees(30ms, active_deleted{{15}}), role::active);
    asks<renew>(30ms);
}

// ---- the chain

TEST_F(role_dialogue, has_one_transaction_under_way_and_keepalives_beside_it) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    asks_nothing(1400ms);
    tokens.last = 1U << 30U;  // a higher ceiling is wanted
    asks_nothing(1400ms);
}

TEST_F(role_dialogue, a_lost_answer_is_recovered_along_the_chain_and_proves_nothing_about_time) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1501ms, failed{"no answer in time"});
    const renew second = asks<renew>(1501ms);
    EXPECT_EQ(second.known, revision{11});
    EXPECT_EQ(second.value.sequence, 3U) << "each that is sent has a number of its own";
    EXPECT_EQ(hears(1510ms, renewed{false, {}, somebody({10}, {12}, 2)}), role::active);
    EXPECT_EQ(subject.deadline(), at(3201ms));
    EXPECT_EQ(subject.tokens().ceiling, first_ceiling) << "the unanswered raise counts as none";
    const renew third = asks<renew>(1510ms);
    EXPECT_EQ(third.known, revision{12});
    hears(1520ms, renewed{true, {13}, {}});
    EXPECT_EQ(subject.deadline(), at(1510ms + 3200ms));
}

TEST_F(role_dialogue, a_renewal_that_keeps_being_overtaken_does_not_become_a_loop) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1010ms, renewed{false, {}, somebody({10}, {12}, 1)});
    asks<renew>(1010ms);
    hears(1020ms, renewed{false, {}, somebody({10}, {13}, 1)});
    asks_nothing(1020ms);
    EXPECT_EQ(subject.next_wakeup(), at(1510ms));
}

TEST_F(role_dialogue, answers_that_make_no_sense_count_as_none) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1010ms, renewed{true, {11}, {}});  // the revision did not rise
    EXPECT_EQ(subject.deadline(), at(3201ms));
    EXPECT_EQ(subject.store_errors(), 1U);
    EXPECT_EQ(subject.last_error(), "an answer that makes no sense");
    asks<renew>(1501ms);
    hears(1510ms, renewed{false, {}, somebody({10}, {3}, 1)});  // and did not fall
    asks_nothing(1510ms);
    asks<renew>(2001ms);
    hears(2010ms, lease_kept{4s});  // another question's
    EXPECT_EQ(subject.deadline(), at(3201ms));
    EXPECT_EQ(subject.store_errors(), 3U);
    EXPECT_EQ(subject.state(), role::active);
    subject.take(ticket{12345}, renewed{true, {99}, {}}, at(2020ms));
    EXPECT_EQ(subject.deadline(), at(3201ms)) << "nobody asked";
}

TEST_F(role_dialogue, a_lease_that_makes_no_sense_is_not_used) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    hears(0ms, lease_granted{lease_of_mine, -3s});
    EXPECT_EQ(asks<revoke_lease>(0ms).lease, lease_of_mine);
    asks_nothing(0ms);
    asks<grant_lease>(500ms);
    hears(500ms, lease_granted{{0}, 4s});
    EXPECT_EQ(subject.store_errors(), 2U);
    asks_nothing(1499ms);
    asks<grant_lease>(1500ms);
}

TEST_F(role_dialogue, a_look_that_makes_no_sense_is_repeated) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {0}});
    EXPECT_EQ(subject.state(), role::standby);
    asks_nothing(499ms);
    asks<look>(500ms);
    hears(500ms, seen{somebody({5}, {70}, 1), {9}});  // from the future
    EXPECT_FALSE(subject.watch());
    asks_nothing(1499ms);
    asks<look>(1500ms);
}

TEST_F(role_dialogue, a_chain_that_was_mended_once_is_mended_at_once_the_next_time) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1010ms, renewed{false, {}, somebody({10}, {12}, 1)});
    renews(1010ms, {13});
    asks<renew>(2010ms);
    hears(2020ms, renewed{false, {}, somebody({10}, {14}, 1)});
    EXPECT_EQ(asks<renew>(2020ms).known, revision{14});
}

TEST_F(role_dialogue, says_that_an_answer_made_no_sense_if_that_is_why_it_lost) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1010ms, renewed{false, {}, somebody({10}, {11}, 1)});
    EXPECT_EQ(subject.store_errors(), 1U);
    subject.judge(at(2s));
    subject.judge(at(3201ms));
    EXPECT_EQ(subject.last_loss(),
              "no renewal was answered in time: an answer that makes no sense");
}

TEST_F(role_dialogue, a_look_that_fails_is_told_and_repeated) {
    asks<look>(0ms);
    hears(500ms, failed{"no answer in time"});
    EXPECT_EQ(subject.store_errors(), 1U);
    EXPECT_EQ(subject.last_error(), "no answer in time");
    EXPECT_FALSE(subject.watch());
    asks_nothing(999ms);
    asks<look>(1s);
    EXPECT_EQ(hears(1s, seen{{}, {1}}), role::campaigning) << "the first revision of all";
    EXPECT_EQ(subject.watch()->from, revision{2});
}

TEST_F(role_dialogue, a_look_may_find_what_was_put_this_very_moment) {
    asks<look>(0ms);
    EXPECT_EQ(hears(0ms, seen{somebody({5}, {9}, 2), {9}}), role::standby);
    EXPECT_EQ(subject.watch()->from, revision{10});
    EXPECT_EQ(subject.store_errors(), 0U);
}

TEST_F(role_dialogue, a_look_that_the_watch_has_overtaken_changes_nothing) {
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 2), {9}});
    asks<look>(2s);
    const ticket slow = asked;
    EXPECT_EQ(sees(2100ms, active_deleted{{10}}), role::campaigning);
    asks<grant_lease>(2100ms);
    subject.take(slow, seen{somebody({5}, {7}, 2), {9}}, at(2200ms));
    EXPECT_EQ(subject.state(), role::campaigning);
    EXPECT_EQ(subject.holder(), std::nullopt);
    EXPECT_EQ(subject.watch()->number, 1U);
}

// ---- campaigns

TEST_F(role_dialogue, a_campaign_whose_answer_was_lost_takes_its_lease_with_it) {
    campaigns(0ms);
    EXPECT_EQ(hears(500ms, failed{"no answer in time"}), role::standby);
    EXPECT_EQ(asks<revoke_lease>(500ms).lease, lease_of_mine)
        << "if the key is its own after all, it goes, too";
    asks_nothing(999ms);
    asks<look>(1s);
    active_entry mine = somebody({10}, {10}, 0);
    mine.value.name = "a";
    EXPECT_EQ(hears(1s, seen{mine, {10}}), role::standby) << "the revocation was slow";
    EXPECT_EQ(sees(1200ms, active_deleted{{11}}), role::campaigning);
    asks<grant_lease>(1200ms);
    hears(1210ms, lease_granted{{78}, 4s});
    EXPECT_EQ(asks<campaign>(1210ms).lease, lease_id{78}) << "never the old one again";
}

TEST_F(role_dialogue, a_campaign_that_another_won_leaves_it_a_standby) {
    campaigns(0ms);
    EXPECT_EQ(hears(1ms, campaigned{false, {}, {}, somebody({10}, {10}, 0)}), role::standby);
    EXPECT_EQ(subject.holder(), "b");
    EXPECT_EQ(asks<revoke_lease>(1ms).lease, lease_of_mine);
    asks_nothing(1ms);
    EXPECT_EQ(subject.next_wakeup(), at(2001ms));
}

TEST_F(role_dialogue, a_campaign_that_makes_no_sense_is_one_that_failed) {
    for (const campaigned& strange :
         {campaigned{true, {0}, {}, {}}, campaigned{false, {}, {}, {}}}) {
        subject = role_machine{options};
        campaigns(0ms);
        EXPECT_EQ(hears(1ms, strange), role::standby);
        EXPECT_EQ(subject.store_errors(), 1U);
        EXPECT_EQ(asks<revoke_lease>(1ms).lease, lease_of_mine);
        asks_nothing(500ms);
        asks<look>(501ms);
    }
}

// Its revocation is seen as a key that is gone, and another's as well.
TEST_F(role_dialogue,
       what_it_won_for_nothing_is_campaigned_for_after_a_pause_that_doubles_to_a_ttl) {
    campaigns(0ms);
    nanoseconds time = 0ms;
    std::int64_t made = 10;
    for (const milliseconds pause : {500ms, 1000ms, 2000ms, 4000ms, 4000ms}) {
        EXPECT_EQ(hears(time, failed{"what is there is no record of ours"}), role::standby);
        asks<revoke_lease>(time);
        hears(time, lease_revoked{});
        for (int wins = 0; wins < 2; ++wins) {
            ++made;
            sees(time, active_put{somebody({made}, {made}, 0)});
            EXPECT_FALSE(subject.holder_has_renewed());
            EXPECT_EQ(sees(time, active_deleted{{++made}}), role::campaigning);
        }
        asks_nothing(time + pause - 1ns);
        time += pause;
        asks<grant_lease>(time);
        hears(time, lease_granted{lease_of_mine, 4s});
        asks<campaign>(time);
    }
    hears(time, failed{"what is there is no record of ours"});
    asks<revoke_lease>(time);
    hears(time, lease_revoked{});
    sees(time, active_put{somebody({90}, {91}, 1)});
    EXPECT_TRUE(subject.holder_has_renewed());
    sees(time, active_deleted{{92}});
    time += 4s;
    asks<grant_lease>(time);
    hears(time, lease_granted{lease_of_mine, 4s});
    asks<campaign>(time);
    hears(time, failed{"no answer in time"});
    asks<revoke_lease>(time);
    hears(time, lease_revoked{});
    sees(time, active_deleted{{94}});
    asks_nothing(time + 500ms - 1ns);
    asks<grant_lease>(time + 500ms);
}

TEST_F(role_dialogue, who_lost_the_key_before_it_was_active_pauses) {
    wins(0ms, state_of({5}, 3));
    asks<renew>(1ms);
    EXPECT_EQ(hears(2ms, renewed{false, {}, {}}), role::standby);
    asks<look>(2ms);
    asks<revoke_lease>(2ms);
    subject.take(ticket{asked.value - 1}, seen{{}, {20}}, at(3ms));
    EXPECT_EQ(subject.state(), role::campaigning);
    asks_nothing(502ms - 1ns);
    asks<grant_lease>(502ms);
}

TEST_F(role_dialogue, does_not_campaign_when_another_was_faster) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    EXPECT_EQ(sees(1ms, active_put{somebody({10}, {10}, 0)}), role::standby);
    hears(2ms, lease_granted{lease_of_mine, 4s});
    EXPECT_EQ(asks<revoke_lease>(2ms).lease, lease_of_mine);
    asks_nothing(2ms);
}

TEST_F(role_dialogue, gives_a_lease_back_that_came_before_the_news_that_another_was_faster) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    hears(0ms, lease_granted{lease_of_mine, 4s});
    EXPECT_EQ(sees(1ms, active_put{somebody({10}, {10}, 0)}), role::standby);
    EXPECT_EQ(asks<revoke_lease>(1ms).lease, lease_of_mine);
    EXPECT_EQ(subject.next_wakeup(), at(2001ms));
}

TEST_F(role_dialogue, what_its_own_campaign_put_may_be_seen_before_the_answer) {
    campaigns(0ms);
    EXPECT_EQ(sees(1ms, active_put{somebody({10}, {10}, 0)}), role::campaigning);
    EXPECT_EQ(hears(2ms, campaigned{true, {10}, {}, {}}), role::waiting);
}

TEST_F(role_dialogue, looks_at_once_if_its_watch_broke_during_a_campaign_that_was_lost) {
    campaigns(0ms);
    EXPECT_EQ(sees(1ms, watch_broken{"gone"}), role::campaigning);
    hears(2ms, campaigned{false, {}, {}, somebody({10}, {10}, 0)});
    asks<look>(2ms);
    hears(3ms, seen{somebody({10}, {10}, 0), {10}});
    EXPECT_EQ(sees(4ms, active_deleted{{11}}), role::campaigning);
    asks<grant_lease>(4ms);
    hears(4ms, lease_granted{{78}, 4s});
    asks<campaign>(4ms);
    hears(5ms, campaigned{false, {}, {}, somebody({12}, {12}, 0)});
    asks<revoke_lease>(5ms);
    asks_nothing(5ms);  // the new watch will tell
}

TEST_F(role_dialogue, a_win_ends_the_pauses_of_what_failed_before) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    hears(0ms, failed{"refused"});
    asks<grant_lease>(500ms);
    hears(500ms, lease_granted{lease_of_mine, 4s});
    asks<campaign>(500ms);
    hears(501ms, campaigned{true, {10}, {}, {}});
    asks<renew>(501ms);
    hears(502ms, renewed{false, {}, {}});
    asks<look>(502ms);
    hears(502ms, failed{"refused"});
    asks<revoke_lease>(502ms);
    asks_nothing(1001ms);
    asks<look>(1002ms);
}

TEST_F(role_dialogue, failed_leases_are_asked_for_again_with_a_pause_that_doubles_to_a_ttl) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    nanoseconds time = 0ms;
    for (const milliseconds pause : {500ms, 1000ms, 2000ms, 4000ms, 4000ms}) {
        asks<grant_lease>(time);
        hears(time, failed{"refused"});
        asks_nothing(time + pause - 1ns);
        time += pause;
    }
    asks<grant_lease>(time);
}

// ---- the watch

TEST_F(role_dialogue, a_watch_that_fell_silent_for_half_a_ttl_is_replaced_after_a_look) {
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 2), {9}});
    asks_nothing(1999ms);
    asks<look>(2s);
    hears(2010ms, seen{somebody({5}, {19}, 9), {20}});
    EXPECT_EQ(subject.watch()->number, 2U);
    EXPECT_EQ(subject.watch()->from, revision{21});
}

TEST_F(role_dialogue, a_watch_that_broke_is_replaced_at_once_and_then_with_a_pause) {
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 2), {9}});
    sees(10ms, watch_broken{"gone"});
    asks<look>(10ms);
    hears(10ms, seen{somebody({5}, {7}, 2), {9}});
    sees(20ms, watch_broken{"gone"});
    asks_nothing(1019ms);
    asks<look>(1020ms);
    hears(1020ms, seen{somebody({5}, {7}, 2), {9}});
    sees(1030ms, active_put{somebody({5}, {10}, 3)});
    sees(1040ms, watch_broken{"gone"});
    asks<look>(1040ms);
    EXPECT_EQ(subject.store_errors(), 3U);
}

TEST_F(role_dialogue, a_key_that_was_deleted_long_ago_is_no_news) {
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 2), {9}});
    EXPECT_EQ(sees(1ms, active_deleted{{6}}), role::standby);
    EXPECT_EQ(sees(2ms, active_deleted{{10}}), role::campaigning);
}

}  // namespace
}  // namespace monolock::coordination
