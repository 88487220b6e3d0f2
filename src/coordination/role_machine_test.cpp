#include "coordination/role_machine.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "coordination/token_window.hpp"
#include "support/role_dialogue.hpp"

namespace monolock::coordination {
namespace {

using namespace std::chrono_literals;

// ---- from standby to active and back

TEST_F(role_dialogue, looks_first_and_follows_who_has_the_key) {
    EXPECT_EQ(subject.state(), role::standby);
    EXPECT_FALSE(subject.watch());
    EXPECT_FALSE(subject.holder_has_renewed()) << "nobody is known";
    EXPECT_EQ(subject.opens_in(at(0ms)), 0ms);
    asks<look>(0ms);
    asks_nothing(0ms);
    EXPECT_EQ(hears(5ms, seen{somebody({5}, {7}, 2), {9}}), role::standby);
    ASSERT_TRUE(subject.watch());
    EXPECT_EQ(subject.watch()->from, revision{10}) << "behind the revision of the look";
    EXPECT_EQ(subject.holder(), "b");
    EXPECT_EQ(subject.next_wakeup(), at(2005ms));
    EXPECT_EQ(sees(1s, active_put{somebody({5}, {10}, 3)}), role::standby);
    EXPECT_EQ(subject.next_wakeup(), at(3s)) << "as long as the watch speaks, there is no look";
    EXPECT_FALSE(subject.current_term());
}

TEST_F(role_dialogue, opens_at_once_after_a_resignation_when_its_own_renewal_was_answered) {
    state_record before = state_of({5}, 3);
    before.resigned = true;
    wins(0ms, before);
    EXPECT_EQ(subject.current_term(), term{10});
    EXPECT_EQ(subject.holder(), "a");
    EXPECT_FALSE(subject.holder_has_renewed());
    EXPECT_FALSE(is_told<open_now>()) << "not before a renewal was answered";
    const renew sent = asks<renew>(1ms);
    EXPECT_EQ(sent.known, revision{10});
    EXPECT_EQ(sent.lease, lease_of_mine);
    EXPECT_EQ(sent.mine, term{10});
    EXPECT_EQ(sent.value, (active_record{.name = "a", .ttl = 4s, .sequence = 1}));
    EXPECT_EQ(sent.state->name, "a");
    EXPECT_EQ(sent.state->written_in, term{10});
    EXPECT_FALSE(sent.state->resigned);
    EXPECT_EQ(hears(9ms, renewed{true, {11}, {}}), role::active);
    EXPECT_TRUE(subject.holder_has_renewed());
    EXPECT_TRUE(is_told<open_now>());
    EXPECT_EQ(subject.failovers(), 1U);
    EXPECT_EQ(subject.deadline(), at(1ms + 3200ms)) << "from the send time, not the answer's";
    EXPECT_EQ(subject.next_wakeup(), at(1s)) << "the keepalive; the renewal is due at 1001 ms";
}

TEST_F(role_dialogue, counts_its_mandate_from_the_send_time_of_what_was_answered) {
    opens();
    leave_keepalive(1s);
    const renew second = asks<renew>(1001ms);
    EXPECT_EQ(second.known, revision{11});
    EXPECT_EQ(second.value.sequence, 2U);
    EXPECT_EQ(subject.deadline(), at(3201ms)) << "not yet answered";
    hears(1400ms, renewed{true, {12}, {}});
    EXPECT_EQ(subject.deadline(), at(4201ms));
    EXPECT_EQ(subject.next_wakeup(), at(2001ms));
}

TEST_F(role_dialogue, takes_the_smaller_of_the_asked_and_the_answered_ttl) {
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    EXPECT_EQ(asks<grant_lease>(0ms).ttl, 4s);
    hears(0ms, lease_granted{lease_of_mine, 2s});
    EXPECT_EQ(asks<campaign>(0ms).value.ttl, 2s);
    hears(1ms, campaigned{true, {10}, {}, {}});
    EXPECT_EQ(subject.deadline(), at(1600ms));

    role_machine other{options};
    subject = std::move(other);
    asks<look>(0ms);
    hears(0ms, seen{{}, {9}});
    asks<grant_lease>(0ms);
    hears(0ms, lease_granted{lease_of_mine, 60s});
    EXPECT_EQ(asks<campaign>(0ms).value.ttl, 4s);
    hears(1ms, campaigned{true, {10}, {}, {}});
    EXPECT_EQ(subject.deadline(), at(3200ms));
}

TEST_F(role_dialogue, steps_down_at_the_deadline_and_begins_anew_when_its_sessions_are_ended) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1501ms, failed{"no answer in time"});
    EXPECT_EQ(subject.next_wakeup(), at(1501ms)) << "an eighth of a TTL after it was sent";
    asks<renew>(1600ms);
    subject.judge(at(3200ms));
    EXPECT_EQ(subject.state(), role::active);
    subject.judge(at(3201ms));
    EXPECT_EQ(subject.state(), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::mandate_over);
    EXPECT_EQ(subject.last_loss(), "no renewal was answered in time: no answer in time");
    EXPECT_EQ(subject.deadline(), time_point{});
    EXPECT_EQ(subject.tokens(), token_range{});
    EXPECT_FALSE(subject.current_term());
    EXPECT_EQ(hears(3202ms, renewed{true, {12}, {}}), role::stepping_down) << "too late";

    asks_nothing(4s);
    EXPECT_EQ(subject.next_wakeup(), std::nullopt) << "it waits for the sessions";
    subject.sessions_ended(at(5s));
    EXPECT_EQ(subject.state(), role::standby);
    asks<look>(5s);
    EXPECT_EQ(asks<revoke_lease>(5s).lease, lease_of_mine);
    hears(5100ms, failed{"no answer in time"});
    asks_nothing(5200ms);
}

// The shell may have nothing else to wake it: its calls have failed, and its watch has broken.
TEST_F(role_dialogue, a_loss_that_is_noticed_when_it_is_asked_for_requests_is_not_slept_over) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    asks_nothing(3201ms);
    EXPECT_EQ(subject.state(), role::stepping_down);
    EXPECT_EQ(subject.next_wakeup(), time_point{});
    EXPECT_EQ(is_told<step_down_now>()->why, loss::mandate_over);
    EXPECT_EQ(subject.next_wakeup(), std::nullopt);
}

TEST_F(role_dialogue, a_jump_of_hours_comes_before_whatever_arrived) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    EXPECT_EQ(hears(5h, renewed{true, {12}, {}}), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::mandate_over);

    EXPECT_EQ(subject.last_loss(),
              "no renewal was answered in time: this process stood still for 17998999 ms");

    role_machine other{options};
    subject = std::move(other);
    opens();
    EXPECT_EQ(sees(5h, active_put{somebody({10}, {12}, 2)}), role::stepping_down);

    role_machine third{options};
    subject = std::move(third);
    opens();
    subject.report({.adopted = 0ms, .longest = 0ms, .wanted = 1s}, at(5h));
    EXPECT_EQ(subject.state(), role::stepping_down);
    asks_nothing(5h);
}

// Its thread was stopped between the answer that made it active and the opening.
TEST_F(role_dialogue, what_was_lost_before_anybody_was_told_to_open_is_not_opened) {
    state_record before = state_of({5}, 3);
    before.resigned = true;
    wins(0ms, before);
    renews(1ms, {11});
    ASSERT_EQ(subject.state(), role::active);
    subject.judge(at(5h));
    EXPECT_EQ(subject.state(), role::standby) << "no session has to be ended";
    EXPECT_FALSE(subject.next_event());
    EXPECT_EQ(subject.failovers(), 0U);
    EXPECT_EQ(subject.last_loss(),
              "no renewal was answered in time: this process stood still for 17999998 ms");
    asks<look>(5h);
    EXPECT_EQ(asks<revoke_lease>(5h).lease, lease_of_mine);
}

TEST_F(role_dialogue, a_campaign_that_was_answered_hours_later_gives_no_mandate) {
    campaigns(0ms);
    EXPECT_EQ(hears(5h, campaigned{true, {10}, {}, {}}), role::standby);
    EXPECT_FALSE(subject.next_event());
    asks<look>(5h);
    EXPECT_EQ(asks<revoke_lease>(5h).lease, lease_of_mine);
}

TEST_F(role_dialogue, an_answer_behind_the_deadline_does_not_bring_the_mandate_back) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1501ms, failed{"no answer in time"});
    asks<renew>(3100ms);
    EXPECT_EQ(hears(3201ms, renewed{true, {12}, {}}), role::stepping_down)
        << "though it would reach until 6.3 s";
}

TEST_F(role_dialogue, what_failed_before_a_renewal_that_was_answered_is_not_why_it_lost) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    hears(1501ms, failed{"no answer in time"});
    EXPECT_EQ(subject.last_error(), "no answer in time");
    renews(1501ms, {12});
    EXPECT_EQ(subject.last_error(), "");
    subject.judge(at(3s));
    subject.judge(at(4701ms));
    EXPECT_EQ(subject.last_loss(), "no renewal was answered in time");
    EXPECT_EQ(subject.holder(), std::nullopt) << "not its own name any more";
}

TEST_F(role_dialogue, sessions_that_are_abandoned_by_who_stays_are_waited_for) {
    opens();
    subject.judge(at(5h));
    ASSERT_EQ(subject.state(), role::stepping_down);
    subject.sessions_abandoned();
    EXPECT_EQ(subject.state(), role::stepping_down) << "who stays needs its threads";
    subject.sessions_ended(at(5h));
    EXPECT_EQ(subject.state(), role::standby);
}

TEST_F(role_dialogue, an_order_to_leave_behind_the_deadline_finds_nothing_to_resign) {
    opens();
    subject.shut_down(at(5h));
    EXPECT_EQ(is_told<step_down_now>()->why, loss::mandate_over);
    EXPECT_FALSE(subject.next_event());
    subject.sessions_ended(at(5h));
    EXPECT_EQ(asks<revoke_lease>(5h).lease, lease_of_mine);
    EXPECT_EQ(hears(5h, lease_revoked{}), role::retired);
}

// What its last term asked for, and was not answered then.
TEST_F(role_dialogue, an_answer_of_an_earlier_term_means_nothing) {
    opens();
    leave_keepalive(1s);
    const ticket old_keepalive = asked;
    asks<renew>(1001ms);
    const ticket old_renewal = asked;
    subject.judge(at(3201ms));
    subject.sessions_ended(at(3201ms));
    asks<look>(3201ms);
    EXPECT_EQ(hears(3201ms, seen{{}, {19}}), role::campaigning);
    EXPECT_EQ(asks<revoke_lease>(3201ms).lease, lease_of_mine);
    asks_nothing(3201ms);  // the renewal may still be carried out
    subject.take(old_renewal, failed{"no answer in time"}, at(3300ms));
    EXPECT_EQ(subject.store_errors(), 0U);
    asks<grant_lease>(3300ms);
    hears(3300ms, lease_granted{{78}, 4s});
    asks<campaign>(3300ms);
    ASSERT_EQ(hears(3300ms, campaigned{true, {20}, {}, {}}), role::waiting);
    subject.take(old_keepalive, lease_kept{0s}, at(3301ms));
    EXPECT_EQ(subject.state(), role::waiting);
}

// ---- when it opens

TEST_F(role_dialogue, opens_a_ttl_after_it_saw_the_last_renewal) {
    asks<look>(0ms);
    hears(5ms, seen{somebody({5}, {7}, 2), {9}});
    sees(1s, active_put{somebody({5}, {8}, 3)});
    sees(4s, active_deleted{{9}});
    asks<grant_lease>(4s);
    hears(4s, lease_granted{lease_of_mine, 4s});
    asks<campaign>(4s);
    hears(4s, campaigned{true, {10}, state_of({5}, 3), {}});
    EXPECT_FALSE(renews(4s, {11}).state) << "who comes next waits for that one, and not for this";
    EXPECT_EQ(subject.state(), role::waiting);
    EXPECT_EQ(subject.opens_in(at(4s)), 1s);
    EXPECT_EQ(subject.next_wakeup(), at(5s));
    asks_nothing(5s - 1ns);
    const renew sent = asks<renew>(5s);
    ASSERT_TRUE(sent.state);
    EXPECT_EQ(sent.state->written_in, term{10});
    EXPECT_EQ(subject.state(), role::waiting) << "not before that is answered";
    EXPECT_EQ(subject.opens_in(at(5s)), 0ms);
    EXPECT_EQ(hears(5001ms, renewed{true, {12}, {}}), role::active);
}

// Or the next one might read the name of one before, and open beside this one.
TEST_F(role_dialogue, does_not_open_before_a_renewal_that_names_it_was_answered) {
    wins(0ms, state_of({5}, 3));
    for (int second = 0; second < 4; ++second) {
        EXPECT_FALSE(renews(second * 1s + 1ms, {11 + second}).state);
        leave_keepalive((second + 1) * 1s);
        hears((second + 1) * 1s, lease_kept{4s});
    }
    EXPECT_EQ(subject.next_wakeup(), at(4001ms));
    ASSERT_TRUE(asks<renew>(4001ms).state);
    hears(4501ms, failed{"no answer in time"});
    EXPECT_EQ(subject.state(), role::waiting);
    ASSERT_TRUE(asks<renew>(4501ms).state);
    EXPECT_EQ(hears(4502ms, renewed{false, {}, somebody({10}, {15}, 5)}), role::waiting);
    ASSERT_TRUE(asks<renew>(4502ms).state);
    EXPECT_EQ(hears(4503ms, renewed{true, {16}, {}}), role::active);
}

TEST_F(role_dialogue, what_a_look_saw_counts_as_seen) {
    asks<look>(0ms);
    hears(5ms, seen{somebody({5}, {7}, 3), {9}});
    sees(3s, active_deleted{{10}});
    asks<grant_lease>(3s);
    hears(3s, lease_granted{lease_of_mine, 4s});
    asks<campaign>(3s);
    hears(3s, campaigned{true, {11}, state_of({5}, 3), {}});
    renews(3s, {12});
    EXPECT_EQ(subject.opens_in(at(4s)), 5ms);
    EXPECT_TRUE(renews(4005ms, {13}).state);
    EXPECT_EQ(subject.state(), role::active);
}

TEST_F(role_dialogue, what_a_lost_campaign_saw_counts_as_seen) {
    campaigns(0ms);
    hears(5ms, campaigned{false, {}, {}, somebody({10}, {10}, 0)});
    asks<revoke_lease>(5ms);
    sees(3s, active_deleted{{11}});
    asks<grant_lease>(3s);
    hears(3s, lease_granted{{78}, 4s});
    asks<campaign>(3s);
    hears(3s, campaigned{true, {12}, state_of({10}, 0), {}});
    renews(3s, {13});
    EXPECT_EQ(subject.opens_in(at(4s)), 5ms);
    EXPECT_TRUE(renews(4005ms, {14}).state);
    EXPECT_EQ(subject.state(), role::active);
}

TEST_F(role_dialogue, waits_a_ttl_from_the_answer_if_the_last_renewal_was_another_than_it_saw) {
    asks<look>(0ms);
    hears(5ms, seen{somebody({5}, {7}, 2), {9}});
    sees(1s, active_deleted{{9}});
    asks<grant_lease>(1s);
    hears(1s, lease_granted{lease_of_mine, 4s});
    asks<campaign>(1s);
    state_record before = state_of({5}, 3);
    before.ttl = 10s;
    hears(1100ms, campaigned{true, {10}, before, {}});
    EXPECT_FALSE(renews(1100ms, {11}).state) << "the successor must wait as long, if it dies";
    for (int second = 2; second <= 10; ++second) {
        const renew next = renews(second * 1s + 100ms, {10 + second});
        EXPECT_FALSE(next.state);
        leave_keepalive(second * 1s + 100ms);
        EXPECT_EQ(hears(second * 1s + 100ms, lease_kept{4s}), role::waiting);
    }
    subject.judge(at(11100ms - 1ns));
    EXPECT_EQ(subject.state(), role::waiting);
    EXPECT_EQ(renews(11100ms, {30}).state->ttl, 4s) << "from then on its own";
    EXPECT_EQ(subject.state(), role::active);
}

// However long its TTL, and however often it is started and stopped.
TEST_F(role_dialogue, who_was_never_active_is_not_waited_for_and_hides_nobody) {
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 3), {9}});
    for (int server = 0; server < 2; ++server) {
        const std::int64_t of = 20 + 10 * server;
        sees(1s + server * 1s, active_put{somebody({of}, {of}, 0)});
        sees(1s + server * 1s, active_put{somebody({of}, {of + 1}, 1)});
        sees(2s + server * 1s, active_deleted{{of + 2}});
    }
    asks<grant_lease>(3s);
    hears(3s, lease_granted{lease_of_mine, 4s});
    asks<campaign>(3s);
    hears(3s, campaigned{true, {40}, state_of({5}, 3), {}});
    EXPECT_EQ(subject.opens_in(at(3s)), 1s) << "a TTL after the last renewal of who was active";
}

TEST_F(role_dialogue, the_first_of_all_waits_a_ttl_and_inherits_nothing) {
    options.grant_delay.fixed = std::nullopt;
    subject = role_machine{options};
    wins(0ms, {});
    renews(1ms, {11});
    for (int second = 1; second <= 3; ++second) {
        renews(second * 1s + 1ms, {11 + second});
        leave_keepalive(second * 1s + 1ms);
        hears(second * 1s + 1ms, lease_kept{4s});
    }
    EXPECT_EQ(subject.state(), role::waiting);
    EXPECT_EQ(subject.opens_in(at(4s)), 1ms);
    EXPECT_TRUE(renews(4001ms, {15}).state);
    EXPECT_EQ(subject.state(), role::active);
    EXPECT_EQ(subject.grants_from(), at(4002ms));
    EXPECT_EQ(subject.lease_limit(), 0ms);
    EXPECT_EQ(subject.tokens(), (token_range{.first = 1, .ceiling = first_ceiling}));
}

TEST_F(role_dialogue, does_not_open_without_a_renewal_however_long_its_predecessor_is_gone) {
    state_record before = state_of({5}, 3);
    before.resigned = true;
    wins(0ms, before);
    asks<renew>(1ms);
    hears(501ms, failed{"no answer in time"});
    asks<renew>(501ms);
    EXPECT_EQ(hears(600ms, renewed{false, {}, somebody({10}, {11}, 1)}), role::waiting);
    EXPECT_FALSE(is_told<open_now>());
    asks<renew>(600ms);
    EXPECT_EQ(hears(610ms, renewed{true, {12}, {}}), role::active);
}

// ---- tokens and leases

TEST_F(role_dialogue, its_tokens_begin_at_the_ceiling_it_read_and_end_at_the_one_it_put) {
    opens();
    EXPECT_EQ(subject.tokens(), (token_range{.first = 5000, .ceiling = first_ceiling}));
    EXPECT_EQ(next_token(subject.tokens(), tokens), std::uint64_t{1000} << 10U);
}

TEST_F(role_dialogue, a_ceiling_that_is_near_brings_a_renewal_forward_and_counts_when_answered) {
    opens();
    tokens.last = first_ceiling - window / 2 + 1;
    const renew sent = asks<renew>(100ms);
    EXPECT_EQ(sent.state->ceiling, tokens.last + 1 + window);
    EXPECT_EQ(subject.tokens().ceiling, first_ceiling);
    hears(110ms, renewed{true, {12}, {}});
    EXPECT_EQ(subject.tokens().ceiling, tokens.last + 1 + window);
    asks_nothing(110ms);

    tokens.unix_ms += 3'600'000;  // somebody set the clock
    EXPECT_EQ(asks<renew>(120ms).state->ceiling, (tokens.unix_ms << 10U) + window);
    hears(620ms, failed{"no answer in time"});
    EXPECT_EQ(subject.tokens().ceiling, tokens.last + 1 + window);
    asks_nothing(619ms);
    asks<renew>(620ms);
}

TEST_F(role_dialogue,
       a_longer_lease_brings_a_renewal_forward_and_may_be_granted_when_it_was_answered) {
    opens();
    EXPECT_EQ(subject.lease_limit(), 0ms);
    subject.report({.adopted = 0ms, .longest = 0ms, .wanted = 7s}, at(100ms));
    EXPECT_EQ(subject.next_wakeup(), at(2ms)) << "at once";
    EXPECT_EQ(asks<renew>(100ms).state->longest_lease, 7s);
    EXPECT_EQ(subject.lease_limit(), 0ms);
    hears(110ms, renewed{true, {12}, {}});
    EXPECT_EQ(subject.lease_limit(), 7s);
    EXPECT_EQ(subject.longest_lease(), 7s);
    asks_nothing(110ms);
}

TEST_F(role_dialogue, an_automatic_grant_delay_is_the_longest_lease_from_becoming_active_on) {
    options.grant_delay = {.fixed = std::nullopt, .covered_max = 9s};
    for (const auto& [longest, delay] : {std::pair{7s, 7s}, {3600s, 9s}, {-1s, 0s}}) {
        subject = role_machine{options};
        state_record before = state_of({5}, 3);
        before.longest_lease = longest;
        before.resigned = true;
        wins(0ms, before);
        renews(300ms, {11});
        ASSERT_EQ(subject.state(), role::active);
        EXPECT_EQ(subject.grants_from(), at(301ms + delay));
    }
    options.grant_delay.fixed = 250ms;
    subject = role_machine{options};
    opens();
    EXPECT_EQ(subject.grants_from(), at(252ms));
}

// ---- leaving

TEST_F(role_dialogue, resigns_when_its_sessions_are_ended_and_keeps_the_key_until_then) {
    opens();
    subject.shut_down(at(100ms));
    EXPECT_EQ(subject.state(), role::stepping_down);
    EXPECT_EQ(is_told<step_down_now>()->why, loss::shut_down);
    EXPECT_EQ(subject.deadline(), time_point{}) << "it answers nobody any more";
    leave_keepalive(1s);
    asks<renew>(1001ms);
    subject.sessions_ended(at(1100ms));
    EXPECT_EQ(subject.state(), role::resigning);
    asks_nothing(1100ms);  // the renewal is still under way
    hears(1200ms, renewed{true, {12}, {}});
    const resign sent = asks<resign>(1200ms);
    EXPECT_EQ(sent.mine, term{10});
    EXPECT_EQ(sent.known, revision{12});
    EXPECT_TRUE(sent.state.resigned);
    EXPECT_EQ(sent.state.ceiling, 5000U);
    EXPECT_EQ(sent.state.sequence, 3U);
    EXPECT_EQ(hears(1210ms, resigned{true, {}}), role::resigning);
    EXPECT_EQ(asks<revoke_lease>(1210ms).lease, lease_of_mine);
    EXPECT_EQ(hears(1220ms, lease_revoked{}), role::retired);
    EXPECT_TRUE(is_told<retired_now>());
    EXPECT_EQ(subject.next_wakeup(), std::nullopt);
    asks_nothing(10s);
}

// A thread that has stalled may yet act upon what it read: the next server is to wait for that, and
// to begin with its tokens where this one could have ended.
TEST_F(role_dialogue, does_not_resign_for_a_thread_that_has_stalled) {
    opens();
    subject.sessions_abandoned();
    EXPECT_EQ(subject.state(), role::active) << "it was not told to leave";
    subject.shut_down(at(100ms));
    leave_keepalive(1s);
    asks<renew>(1001ms);
    subject.sessions_abandoned();
    EXPECT_EQ(subject.state(), role::resigning);
    EXPECT_EQ(subject.current_term(), std::nullopt);
    EXPECT_EQ(asks<revoke_lease>(1100ms).lease, lease_of_mine);
    EXPECT_EQ(hears(1110ms, lease_revoked{}), role::retired);
    EXPECT_TRUE(is_told<step_down_now>());
    EXPECT_TRUE(is_told<retired_now>());
    asks_nothing(10s);
}

// Else a handover would take a TTL instead of a moment.
TEST_F(role_dialogue, resigns_in_spite_of_a_renewal_whose_answer_was_lost) {
    opens();
    leave_keepalive(1s);
    asks<renew>(1001ms);
    subject.shut_down(at(1100ms));
    hears(1501ms, failed{"no answer in time"});
    subject.sessions_ended(at(1501ms));
    EXPECT_EQ(asks<resign>(1501ms).known, revision{11});
    EXPECT_EQ(hears(1510ms, resigned{false, somebody({10}, {12}, 2)}), role::resigning);
    const resign again = asks<resign>(1510ms);
    EXPECT_EQ(again.known, revision{12});
    EXPECT_TRUE(again.state.resigned);
    hears(1520ms, resigned{true, {}});
    asks<revoke_lease>(1520ms);
}

TEST_F(role_dialogue, resigns_no_key_that_is_another_s_or_that_others_write) {
    const active_entry unchanged = somebody({10}, {11}, 1);
    const active_entry another = somebody({12}, {12}, 0);
    for (const auto& is :
         {std::optional<active_entry>{}, std::optional{unchanged}, std::optional{another}}) {
        subject = role_machine{options};
        opens();
        subject.shut_down(at(100ms));
        subject.sessions_ended(at(100ms));
        asks<resign>(100ms);
        hears(110ms, resigned{false, is});
        asks<revoke_lease>(110ms);
    }
    subject = role_machine{options};
    opens();
    subject.shut_down(at(100ms));
    subject.sessions_ended(at(100ms));
    asks<resign>(100ms);
    hears(110ms, resigned{false, somebody({10}, {12}, 1)});
    asks<resign>(110ms);
    hears(120ms, resigned{false, somebody({10}, {13}, 1)});
    asks<revoke_lease>(120ms);
}

TEST_F(role_dialogue, leaves_the_ceiling_above_the_last_token_and_the_record_as_it_is) {
    state_record before = state_of({5}, 3);
    before.resigned = true;
    before.longest_lease = 7s;
    wins(0ms, before);
    renews(1ms, {11});
    ASSERT_TRUE(is_told<open_now>());
    tokens.last = 6000;
    subject.shut_down(at(100ms));
    EXPECT_EQ(subject.last_loss(), "it was shut down");
    subject.sessions_ended(at(200ms));
    const resign sent = asks<resign>(200ms);
    EXPECT_EQ(sent.state.ceiling, 6001U);
    EXPECT_EQ(sent.state.longest_lease, 7s);
    EXPECT_EQ(sent.state.ttl, 4s);
}

// Nothing that it asked for before may still be counted.
TEST_F(role_dialogue, hears_nothing_any_more_when_it_has_left) {
    asks<look>(0ms);
    subject.shut_down(at(0ms));
    ASSERT_EQ(subject.state(), role::retired);
    EXPECT_EQ(hears(500ms, failed{"no answer in time"}), role::retired);
    EXPECT_EQ(subject.store_errors(), 0U);
}

TEST_F(role_dialogue, leaves_though_nothing_is_answered) {
    opens();
    subject.shut_down(at(100ms));
    subject.sessions_ended(at(200ms));
    asks<resign>(200ms);
    hears(700ms, failed{"no answer in time"});
    asks<revoke_lease>(700ms);
    EXPECT_EQ(hears(1200ms, failed{"no answer in time"}), role::retired);
}

TEST_F(role_dialogue, says_why_it_leaves_if_nobody_told_it_to) {
    opens();
    subject.shut_down(at(100ms), "cannot listen");
    EXPECT_EQ(subject.last_loss(), "cannot listen");
}

TEST_F(role_dialogue, who_withdraws_without_being_active_leaves_at_once) {
    subject.withdraw(at(0ms));
    EXPECT_EQ(subject.state(), role::retired);

    subject = role_machine{options};
    asks<look>(0ms);
    hears(0ms, seen{somebody({5}, {7}, 2), {9}});
    subject.withdraw(at(1ms));
    EXPECT_EQ(sees(2ms, active_deleted{{10}}), role::retired) << "and does not campaign";

    subject = role_machine{options};
    wins(0ms, state_of({5}, 3));
    subject.withdraw(at(100ms));
    EXPECT_EQ(asks<revoke_lease>(100ms).lease, lease_of_mine);
    EXPECT_EQ(hears(110ms, lease_revoked{}), role::retired);
}

TEST_F(role_dialogue, who_withdraws_when_active_stays_it_until_it_is_told_to_leave) {
    opens();
    subject.withdraw(at(100ms));
    EXPECT_EQ(subject.state(), role::active);
    leave_keepalive(1s);
    renews(1001ms, {12});
    EXPECT_EQ(subject.deadline(), at(4201ms));
    subject.shut_down(at(1100ms));
    subject.sessions_ended(at(1200ms));
    EXPECT_TRUE(asks<resign>(1200ms).state.resigned);
}

TEST_F(role_dialogue, who_has_withdrawn_and_loses_the_key_leaves_and_does_not_stand_by) {
    opens();
    subject.withdraw(at(100ms));
    subject.judge(at(4s));
    EXPECT_EQ(subject.state(), role::stepping_down);
    subject.sessions_ended(at(5s));
    EXPECT_EQ(subject.state(), role::resigning);
    asks<revoke_lease>(5s);
    EXPECT_EQ(hears(5s, lease_revoked{}), role::retired);

    subject = role_machine{options};
    state_record before = state_of({5}, 3);
    before.resigned = true;
    wins(0ms, before);
    renews(1ms, {11});
    subject.withdraw(at(2ms));  // with the order to open not yet seen
    subject.judge(at(5h));
    EXPECT_EQ(subject.state(), role::resigning);
    EXPECT_FALSE(subject.next_event());
}

TEST_F(role_dialogue, leaves_without_resigning_if_it_had_not_opened) {
    wins(0ms, state_of({5}, 3));
    renews(1ms, {11});
    subject.shut_down(at(100ms));
    EXPECT_EQ(subject.state(), role::resigning);
    EXPECT_EQ(asks<revoke_lease>(100ms).lease, lease_of_mine);
    EXPECT_EQ(hears(110ms, lease_revoked{}), role::retired);
}

TEST_F(role_dialogue, a_campaign_that_is_won_after_the_order_to_leave_is_not_its_own) {
    campaigns(0ms);
    const ticket sent = asked;
    subject.shut_down(at(1ms));
    EXPECT_EQ(asks<revoke_lease>(1ms).lease, lease_of_mine);
    subject.take(sent, campaigned{true, {10}, {}, {}}, at(2ms));
    EXPECT_EQ(subject.state(), role::resigning);
    EXPECT_EQ(hears(3ms, lease_revoked{}), role::retired);

    subject = role_machine{options};
    subject.shut_down(at(0ms));
    EXPECT_EQ(subject.state(), role::retired) << "a standby has nothing to tell";
    subject.shut_down(at(0ms));
    EXPECT_TRUE(is_told<retired_now>());
    EXPECT_FALSE(subject.next_event()) << "once";
}

TEST_F(role_dialogue,
       an_order_to_leave_while_it_steps_down_is_followed_when_its_sessions_are_ended) {
    opens();
    subject.judge(at(4s));
    ASSERT_EQ(subject.state(), role::stepping_down);
    subject.shut_down(at(4s));
    EXPECT_EQ(subject.state(), role::stepping_down);
    subject.sessions_ended(at(5s));
    asks<revoke_lease>(5s);
    EXPECT_EQ(hears(5s, lease_revoked{}), role::retired);
}

TEST_F(role_dialogue, has_nothing_to_resign_if_the_key_is_lost_while_it_leaves) {
    opens();
    subject.shut_down(at(100ms));
    leave_keepalive(1s);
    EXPECT_EQ(hears(1s, lease_kept{0s}), role::stepping_down);
    subject.sessions_ended(at(1100ms));
    asks<revoke_lease>(1100ms);
    asks_nothing(1100ms);
}

TEST_F(role_dialogue, what_it_is_asked_in_the_wrong_state_changes_nothing) {
    subject.sessions_ended(at(0ms));
    subject.sessions_abandoned();
    subject.report({.adopted = 0ms, .longest = 1s, .wanted = 1s}, at(0ms));
    EXPECT_EQ(subject.state(), role::standby);
    EXPECT_EQ(subject.lease_limit(), 0ms);
    EXPECT_EQ(subject.longest_lease(), 0ms);
    EXPECT_EQ(subject.holder(), std::nullopt);
    EXPECT_EQ(subject.last_loss(), "");
}

}  // namespace
}  // namespace monolock::coordination
