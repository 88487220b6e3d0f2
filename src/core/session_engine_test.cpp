#include "core/session_engine.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "support/engine_stage.hpp"

// What is answered, in which order, and what becomes of the connection. The clock rules are in
// session_engine_lease_test.cpp, writes that block in session_engine_output_test.cpp.

namespace monolock::core {
namespace {

using namespace std::chrono_literals;
using support::engine_stage;
using support::lines;

TEST(session_engine, grants_queues_and_promotes) {
    engine_stage stage;
    stage.enters(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1"}));
    stage.enters(2);
    stage.enters(3);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- WAITING", "#3 <- WAITING"}));
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed"}));
    stage.closes(2);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 3", "#2 closed"}));
    stage.closes(3);
    EXPECT_EQ(stage.wire(), (lines{"#3 closed"}));
    EXPECT_EQ(stage.engine().table().lock_count(), 0U);
}

TEST(session_engine, tells_the_observer_after_the_frame_in_the_order_of_events) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.passes(7ns);
    stage.closes(1);
    EXPECT_EQ(stage.everything(),
              (lines{"#1 <- ACQUIRED 1", "granted(#1, token 1, waited 0 ns)", "#2 <- WAITING",
                     "queued(#2)", "#2 <- ACQUIRED 2", "ended(#1, graceful, was owning for 7 ns)",
                     "granted(#2, token 2, waited 7 ns)", "#1 closed"}));
}

TEST(session_engine, a_waiter_that_leaves_costs_the_others_nothing) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.enters(3);
    stage.forget();
    stage.closes(2);
    EXPECT_EQ(stage.wire(), (lines{"#2 closed"}));
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 2", "#1 closed"}));
}

TEST(session_engine, answers_each_message_with_one_frame_in_one_write) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    const int writes = stage.at(1).sends();
    stage.says(1, "\x02\x02\x02");
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1 ACQUIRED 1 ACQUIRED 1"}));
    EXPECT_EQ(stage.at(1).sends(), writes + 1);
    stage.says(2, "\x02\x02");
    EXPECT_EQ(stage.wire(), (lines{"#2 <- WAITING WAITING"}));
    EXPECT_EQ(stage.facts(),
              (lines{"acknowledged(#1, owning, token 1)", "acknowledged(#1, owning, token 1)",
                     "acknowledged(#1, owning, token 1)", "acknowledged(#2, waiting, token 0)",
                     "acknowledged(#2, waiting, token 0)"}));
}

TEST(session_engine, answers_heartbeats_that_came_with_the_acquire) {
    engine_stage stage;
    stage.enters(1, {.rest = "\x02\x02"});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#1 <- ACQUIRED 1 ACQUIRED 1"}));
    stage.enters(2, {.rest = "\x02"});
    EXPECT_EQ(stage.wire(), (lines{"#2 <- WAITING", "#2 <- WAITING"}));
}

// The push answers nothing, so a heartbeat in flight is answered with an ACQUIRED of its own.
TEST(session_engine, pushes_the_grant_and_then_answers_the_heartbeat_in_flight) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.beats(2);
    stage.forget();
    stage.at(2).arrives("\x02");  // on its way while the owner leaves
    stage.closes(1);
    stage.wake_reader(2);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed", "#2 <- ACQUIRED 2"}));
}

TEST(session_engine, reads_a_bounded_number_of_bytes_a_turn) {
    engine_stage stage;
    stage.enters(1);
    stage.at(1).arrives(std::string(session_engine::receive_bytes_max + 1, '\x02'));
    stage.wake_reader(1);
    EXPECT_EQ(stage.at(1).frames().size(), 1 + session_engine::receive_bytes_max);
    EXPECT_TRUE(stage.at(1).awaits_readable());
    stage.wake_reader(1);
    EXPECT_EQ(stage.at(1).frames().size(), 2 + session_engine::receive_bytes_max);
}

TEST(session_engine, survives_a_wake_up_for_nothing) {
    engine_stage stage;
    stage.enters(1);
    stage.forget();
    stage.wake_reader(1);
    stage.engine().writable(stage.at(1));
    EXPECT_EQ(stage.wire(), lines{});
    stage.beats(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1"}));
}

TEST(session_engine, handles_what_arrived_before_the_end_of_file) {
    engine_stage stage;
    stage.enters(1);
    stage.forget();
    stage.at(1).arrives("\x02\x02");
    stage.at(1).ends_with(receive_status::peer_closed);
    stage.wake_reader(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1 ACQUIRED 1"}));
    stage.wake_reader(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 closed"}));
}

TEST(session_engine, names_are_told_apart_byte_for_byte) {
    engine_stage stage;
    std::uint64_t id = 0;
    for (const std::string name : {"a", "a/", "a/b", "ab", "A", "a ", "\xC3\xA9", "e\xCC\x81"}) {
        stage.enters(++id, {.name = name});
        EXPECT_EQ(stage.wire().back(),
                  "#" + std::to_string(id) + " <- ACQUIRED " + std::to_string(id));
    }
}

// Protocol errors

TEST(session_engine, a_second_acquire_ends_the_session_after_the_answers_before_it) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.says(1, "\x02\x02\x01\x01\x02");
    EXPECT_EQ(stage.everything(),
              (lines{"#1 <- ACQUIRED 1 ACQUIRED 1", "acknowledged(#1, owning, token 1)",
                     "acknowledged(#1, owning, token 1)", "error_due(#1, 0x12 'duplicate ACQUIRE')",
                     "#1 <- ERROR 0x12 'duplicate ACQUIRE'", "#2 <- ACQUIRED 2",
                     "ended(#1, graceful, was owning for 0 ns)",
                     "granted(#2, token 2, waited 0 ns)", "#1 lingers"}));
}

TEST(session_engine, an_unknown_message_ends_the_session_and_is_named) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.says(2, "\x7f");
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ERROR 0x13 'unknown message type: 0x7f'", "#2 lingers"}));
    stage.says(1, std::string{"\x00", 1});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ERROR 0x13 'unknown message type: 0x00'", "#1 lingers"}));
}

TEST(session_engine, a_protocol_error_right_behind_the_acquire) {
    engine_stage stage;
    stage.enters(1, {.rest = "\x02\x12\x02"});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#1 <- ACQUIRED 1",
                                   "#1 <- ERROR 0x13 'unknown message type: 0x12'", "#1 lingers"}));
    EXPECT_FALSE(stage.has(1));
}

// Peers that are gone when they are told

TEST(session_engine, a_claim_whose_first_answer_fails_ends_at_once) {
    engine_stage stage;
    stage.connects(1).sending_ends_with(send_status::peer_closed);
    stage.claims(1, {.rest = "\x02"});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (broken)", "#1 closed"}));
    EXPECT_EQ(stage.engine().table().lock_count(), 0U);
}

TEST(session_engine, a_promotion_that_cannot_be_told_goes_to_the_next) {
    engine_stage stage;
    for (std::uint64_t id = 1; id <= 4; ++id) {
        stage.enters(id);
    }
    stage.at(2).sending_ends_with(send_status::peer_closed);
    stage.at(3).sending_ends_with(send_status::peer_closed);
    stage.forget();
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- (broken)", "#1 closed", "#3 <- (broken)", "#2 closed",
                                   "#4 <- ACQUIRED 4", "#3 closed"}));
}

// No recursion, or the stack would end; and no step that grows with the queue.
TEST(session_engine, a_hundred_thousand_dead_waiters_are_passed_over) {
    engine_stage stage;
    constexpr std::uint64_t waiters = 100'000;
    stage.connects(1);
    stage.engine().admit(stage.at(1), {.lease_ms = 1'000, .name = "nightly"},
                         stage.hash_of("nightly"), stage.clock().now(), {});
    for (std::uint64_t id = 2; id <= waiters + 2; ++id) {
        stage.engine().admit(stage.connects(id), {.lease_ms = 1'000, .name = "nightly"},
                             stage.hash_of("nightly"), stage.clock().now(), {});
        if (id <= waiters + 1) {
            stage.at(id).sending_ends_with(send_status::peer_closed);
        }
    }
    stage.forget();
    stage.closes(1);
    EXPECT_EQ(stage.sessions().size(), 1U);
    EXPECT_EQ(stage.at(waiters + 2).state(), session_state::owning);
    EXPECT_EQ(stage.at(waiters + 2).token().value, waiters + 2);
}

TEST(session_engine, an_answer_that_finds_the_peer_gone_ends_the_session) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.at(1).sending_ends_with(send_status::peer_closed);
    stage.says(1, "\x02\x7f");
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (broken)", "#2 <- ACQUIRED 2", "#1 closed"}));
}

// Revocation

// Lets only those stay who are named here.
auto only(std::set<std::uint64_t> allowed) {
    return [allowed = std::move(allowed)](const connected_session& who) {
        return allowed.contains(who.id().value);
    };
}

TEST(session_engine, a_revoked_waiter_leaves_with_an_error_and_the_others_keep_their_order) {
    engine_stage stage;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        stage.enters(id);
    }
    stage.forget();
    stage.passes(3ns);
    EXPECT_EQ(stage.engine().revoke_waiters(only({3, 5})), 2U);
    stage.check();
    EXPECT_EQ(stage.everything(),
              (lines{"error_due(#4, 0x18 'not authorized for lock')",
                     "#4 <- ERROR 0x18 'not authorized for lock'",
                     "ended(#4, graceful, was waiting for 3 ns)", "#4 lingers",
                     "error_due(#2, 0x18 'not authorized for lock')",
                     "#2 <- ERROR 0x18 'not authorized for lock'",
                     "ended(#2, graceful, was waiting for 3 ns)", "#2 lingers"}));
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 2", "#1 closed"}));
    stage.closes(3);
    EXPECT_EQ(stage.wire(), (lines{"#5 <- ACQUIRED 3", "#3 closed"}));
}

TEST(session_engine, owners_are_not_asked_whether_they_may_stay) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2, {.name = "other"});
    stage.enters(3);
    stage.forget();
    EXPECT_EQ(stage.engine().revoke_waiters([](const connected_session& who) {
        EXPECT_EQ(who.state(), session_state::waiting);
        EXPECT_EQ(who.lock_name(), "nightly");
        return false;
    }),
              1U);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ERROR 0x18 'not authorized for lock'", "#3 lingers"}));
    stage.beats(1);
    stage.beats(2);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#2 <- ACQUIRED 2"}));
}

TEST(session_engine, nobody_is_revoked_where_all_may_stay) {
    engine_stage stage;
    EXPECT_EQ(stage.engine().revoke_waiters(only({})), 0U);
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    EXPECT_EQ(stage.engine().revoke_waiters(only({2})), 0U);
    EXPECT_EQ(stage.everything(), lines{});
}

// Whatever the owner does in the same turn: before, the waiter was still allowed and is an owner
// by the time of the revocation; after, he is gone.
TEST(session_engine, a_revoked_waiter_is_never_granted) {
    engine_stage before;
    before.enters(1);
    before.enters(2);
    before.enters(3);
    before.closes(1);
    before.forget();
    EXPECT_EQ(before.engine().revoke_waiters(only({})), 1U);
    EXPECT_EQ(before.wire(), (lines{"#3 <- ERROR 0x18 'not authorized for lock'", "#3 lingers"}));
    before.beats(2);
    EXPECT_EQ(before.wire(), (lines{"#2 <- ACQUIRED 2"}));

    engine_stage after;
    after.enters(1);
    after.enters(2);
    after.forget();
    after.at(1).ends_with(receive_status::peer_closed);  // arrived, not handled yet
    EXPECT_EQ(after.engine().revoke_waiters(only({})), 1U);
    after.wake_reader(1);
    EXPECT_EQ(after.wire(),
              (lines{"#2 <- ERROR 0x18 'not authorized for lock'", "#2 lingers", "#1 closed"}));
    EXPECT_EQ(after.engine().table().lock_count(), 0U);
}

TEST(session_engine, a_waiter_that_cannot_be_told_is_revoked_all_the_same) {
    engine_stage stage;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        stage.enters(id);
    }
    stage.falls_silent(2);
    stage.at(3).takes(0);
    stage.says(3, "\x02");
    stage.at(4).sending_ends_with(send_status::peer_closed);
    stage.at(5).takes(5);
    stage.forget();
    EXPECT_EQ(stage.engine().revoke_waiters(only({})), 4U);
    stage.check();
    EXPECT_EQ(stage.everything(),
              (lines{"error_due(#5, 0x18 'not authorized for lock')", "#5 <- (blocked)",
                     "ended(#5, graceful, was waiting for 0 ns)", "#5 lingers",
                     "error_due(#4, 0x18 'not authorized for lock')", "#4 <- (broken)",
                     "ended(#4, graceful, was waiting for 0 ns)", "#4 lingers",
                     "error_due(#3, 0x18 'not authorized for lock')",
                     "ended(#3, graceful, was waiting for 0 ns)", "#3 lingers",
                     "error_due(#2, 0x18 'not authorized for lock')",
                     "ended(#2, graceful, was waiting for 0 ns)", "#2 lingers"}));
    EXPECT_EQ(stage.sessions().size(), 1U);
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 10s + 1ns)
        << "no backlog is left behind";
}

TEST(session_engine, revocation_while_grants_are_withheld) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.enters(3);
    stage.engine().withhold_grants();
    stage.enters(4, {.name = "a lock without an owner"});
    stage.closes(1);
    stage.forget();
    EXPECT_EQ(stage.engine().revoke_waiters(only({3})), 2U);
    stage.check();
    EXPECT_EQ(stage.engine().table().lock_count(), 1U);
    EXPECT_EQ(stage.engine().table().session_count(), 1U);
    EXPECT_FALSE(stage.engine().close_all(9, protocol::error_code::server_shutting_down));
    EXPECT_FALSE(stage.has(3));
}

// Administration and shutdown

TEST(session_engine, closes_a_session_with_an_error_before_the_next_grant) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.engine().close_with_error(stage.at(1), end_reason::force,
                                    protocol::error_code::closed_by_administrator);
    EXPECT_EQ(stage.everything(),
              (lines{"error_due(#1, 0x02 'closed by administrator')",
                     "#1 <- ERROR 0x02 'closed by administrator'", "#2 <- ACQUIRED 2",
                     "ended(#1, force, was owning for 0 ns)", "granted(#2, token 2, waited 0 ns)",
                     "#1 lingers"}));
}

TEST(session_engine, a_session_closed_with_an_error_passes_the_lock_over_a_dead_waiter) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.enters(3);
    stage.at(2).sending_ends_with(send_status::peer_closed);
    stage.forget();
    stage.engine().close_with_error(stage.at(1), end_reason::force,
                                    protocol::error_code::closed_by_administrator);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ERROR 0x02 'closed by administrator'", "#2 <- (broken)",
                                   "#1 lingers", "#3 <- ACQUIRED 3", "#2 closed"}));
}

TEST(session_engine, finds_the_owner_and_each_waiter_of_a_lock) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.enters(3);
    stage.enters(4, {.name = "other"});
    session_engine& engine = stage.engine();
    const auto owner = [&](std::string_view name) {
        return engine.owner_of(name, stage.hash_of(name));
    };
    const auto waiter = [&](std::string_view name, std::uint64_t id) {
        return engine.waiter_of(name, stage.hash_of(name), session_id{id});
    };
    EXPECT_EQ(owner("nightly"), &stage.at(1));
    EXPECT_EQ(owner("other"), &stage.at(4));
    EXPECT_EQ(owner("nowhere"), nullptr);
    EXPECT_EQ(waiter("nightly", 2), &stage.at(2));
    EXPECT_EQ(waiter("nightly", 3), &stage.at(3));
    EXPECT_EQ(waiter("nightly", 1), nullptr) << "an owner waits no more";
    EXPECT_EQ(waiter("nightly", 4), nullptr) << "of another lock";
    EXPECT_EQ(waiter("nowhere", 2), nullptr);
    engine.withhold_grants();
    stage.closes(1);
    EXPECT_EQ(owner("nightly"), nullptr) << "it has a queue and nobody to own it";
    EXPECT_EQ(waiter("nightly", 2), &stage.at(2));
}

TEST(session_engine, closes_all_in_portions_and_promotes_nobody) {
    engine_stage stage;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        stage.enters(id);
        stage.passes(1ns);
    }
    stage.engine().withhold_grants();
    stage.forget();
    const auto close_two = [&] {
        return stage.engine().close_all(2, protocol::error_code::server_shutting_down);
    };
    EXPECT_TRUE(close_two());
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ERROR 0x01 'server shutting down'", "#1 lingers",
                                   "#2 <- ERROR 0x01 'server shutting down'", "#2 lingers"}));
    stage.check();
    EXPECT_TRUE(close_two());
    EXPECT_FALSE(close_two());
    EXPECT_TRUE(stage.sessions().empty());
    EXPECT_FALSE(close_two());
}

TEST(session_engine, a_claim_during_shutdown_waits) {
    engine_stage stage;
    stage.engine().withhold_grants();
    stage.enters(1);
    stage.beats(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- WAITING", "#1 <- WAITING"}));
    EXPECT_FALSE(stage.engine().close_all(9, protocol::error_code::server_shutting_down));
    EXPECT_FALSE(stage.has(1));
}

// --- the token source refuses, or the mandate is over

TEST(session_engine, what_the_source_refused_is_granted_in_batches_later) {
    engine_stage stage;
    stage.tokens().refuse_above(0s);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        stage.enters(id, {.name = "lock-" + std::to_string(id)});
    }
    EXPECT_EQ(stage.wire(), (lines{"#1 <- WAITING", "#2 <- WAITING", "#3 <- WAITING"}));
    stage.tokens().refuse_above(10s);
    stage.engine().retry_grants(2);
    stage.check();
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#2 <- ACQUIRED 2"}));
    EXPECT_EQ(stage.engine().idle_count(), 1U);
    stage.engine().retry_grants(2);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 3"}));
}

TEST(session_engine, a_late_grant_to_a_peer_that_is_gone_goes_to_the_next) {
    engine_stage stage;
    stage.tokens().refuse_above(0s);
    stage.enters(1);
    stage.enters(2);
    stage.at(1).sending_ends_with(send_status::peer_closed);
    stage.forget();
    stage.tokens().refuse_above(10s);
    stage.engine().retry_grants(1);
    stage.check();
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (broken)", "#2 <- ACQUIRED 2", "#1 closed"}));
}

// Waiters behind the refused head of an idle lock: who is revoked must not inherit from one that
// is revoked before it.
TEST(session_engine, a_revoked_waiter_of_an_idle_lock_is_never_granted) {
    engine_stage stage;
    stage.tokens().refuse_above(10s);
    stage.enters(1, {.lease = 11s});
    stage.enters(2);
    stage.enters(3);
    stage.forget();
    EXPECT_EQ(stage.engine().revoke_waiters(only({3})), 2U);
    stage.check();
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ERROR 0x18 'not authorized for lock'", "#2 lingers",
                                   "#1 <- ERROR 0x18 'not authorized for lock'", "#3 <- ACQUIRED 1",
                                   "#1 lingers"}));
}

TEST(session_engine, without_a_mandate_who_says_something_is_sent_away) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.mandate().put_in_force(false);
    stage.tokens().refuse_above(0s);
    stage.beats(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ERROR 0x01 'server shutting down'", "#1 lingers"}))
        << "and nobody is granted";
    EXPECT_EQ(stage.facts(), (lines{"error_due(#1, 0x01 'server shutting down')",
                                    "ended(#1, graceful, was owning for 0 ns)"}));
    stage.says(2, "\x02\x7f");
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ERROR 0x01 'server shutting down'", "#2 lingers"}));
}

TEST(session_engine, without_a_mandate_an_end_grants_nobody) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.forget();
    stage.mandate().put_in_force(false);
    stage.tokens().refuse_above(0s);
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 closed"}));
    stage.passes_and_is_judged(10s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#2 closed"}));
}

// Expiry reads once more; what it finds keeps nobody, because it is not acted upon.
TEST(session_engine, without_a_mandate_a_beat_that_waits_keeps_no_lease) {
    engine_stage stage;
    stage.enters(1);
    stage.forget();
    stage.at(1).arrives("\x02");
    stage.mandate().put_in_force(false);
    stage.passes_and_is_judged(10s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ERROR 0x01 'server shutting down'", "#1 lingers"}));
}

TEST(session_engine, without_a_mandate_what_was_held_back_stays) {
    engine_stage stage;
    stage.enters(1);
    stage.at(1).takes(0);
    stage.beats(1);
    stage.forget();
    stage.mandate().put_in_force(false);
    stage.makes_room(1, 100);
    EXPECT_EQ(stage.wire(), lines{});
    stage.passes_and_is_judged(5s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 aborted"}));
}

TEST(session_engine, without_a_mandate_what_was_held_back_stays_at_the_end_of_a_lease) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.at(1).takes(0);
    stage.beats(1);
    stage.forget();
    stage.mandate().put_in_force(false);
    stage.at(1).takes(100);
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 closed"}));
}

TEST(session_engine, having_stepped_down_it_can_start_over) {
    engine_stage stage;
    stage.enters(1);
    stage.enters(2);
    stage.mandate().put_in_force(false);
    stage.engine().withhold_grants();
    EXPECT_FALSE(stage.engine().close_all(10, protocol::error_code::server_shutting_down));
    stage.forget();
    stage.mandate().put_in_force(true);
    stage.engine().grant_again();
    stage.enters(3);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 2"}));
}

}  // namespace
}  // namespace monolock::core
