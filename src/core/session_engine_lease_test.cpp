// Who is expired, by which reading of the clock, and who is not.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/session_engine.hpp"
#include "support/engine_stage.hpp"

namespace monolock::core {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using support::engine_stage;
using support::lines;

constexpr milliseconds lease_max{0xFFFFFFFF};

TEST(session_engine_lease, expires_one_nanosecond_after_the_lease_without_an_error) {
    for (const milliseconds lease : {1ms, milliseconds{10s}, lease_max}) {
        engine_stage stage;
        stage.enters(1, {.lease = lease});
        stage.enters(2, {.lease = lease_max});
        stage.forget();
        EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + lease + 1ns);
        stage.passes_and_is_judged(lease);
        EXPECT_EQ(stage.wire(), lines{}) << lease.count() << " ms: early";
        if (lease < lease_max) {
            stage.passes_and_is_judged(1ns);
            EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed"}))
                << lease.count() << " ms";
        } else {
            stage.passes_and_is_judged(1ns);
            EXPECT_TRUE(stage.sessions().empty());
        }
    }
}

TEST(session_engine_lease, states_the_reason_and_how_long_it_was_held) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.enters(2, {.lease = 10s});
    stage.forget();
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, expired, was owning for 1000000001 ns)",
                                    "granted(#2, token 2, waited 1000000001 ns)"}));
}

// Clock rule 1.
TEST(session_engine_lease, counts_from_a_reading_taken_after_the_receive) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.at(1).during_receive([&] { stage.clock().advance(700ms); });
    stage.beats(1);
    stage.at(1).during_receive({});
    EXPECT_EQ(stage.at(1).last_seen(), stage.clock().now());
    stage.passes_and_is_judged(1s);
    EXPECT_TRUE(stage.has(1));
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(1));
}

TEST(session_engine_lease, counts_the_acquire_from_the_reading_it_came_with) {
    engine_stage stage;
    const time_point received_at = stage.clock().now();
    stage.passes(400ms);  // on its way between shards
    stage.enters(1, {.lease = 1s, .rest = "\x02", .received_at = received_at});
    EXPECT_EQ(stage.at(1).last_seen(), received_at);
    EXPECT_EQ(stage.engine().next_deadline(), received_at + 1s + 1ns);
}

// Clock rule 2, and the server's own pause is not the client's silence.
TEST(session_engine_lease, a_stalled_server_expires_nobody_whose_bytes_have_arrived) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.enters(2, {.lease = 1s});
    stage.forget();
    stage.at(1).arrives("\x02");
    stage.at(2).arrives("\x02");
    stage.passes_and_is_judged(1h);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#2 <- WAITING"}));
    EXPECT_EQ(stage.at(1).last_seen(), stage.clock().now());
    stage.passes_and_is_judged(1s);
    EXPECT_EQ(stage.wire(), lines{});
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed", "#2 closed"}));
}

// An encrypted connection may keep back what has left the socket: a wait for the socket is not
// enough.
TEST(session_engine_lease, what_lies_behind_the_last_receive_is_waited_for) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    ASSERT_TRUE(stage.at(1).take_readable_request());
    stage.at(1).arrives("\x02");
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_TRUE(stage.at(1).awaits_readable());
}

TEST(session_engine_lease, the_last_receive_counts_from_a_reading_after_it) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.at(1).arrives("\x02");
    stage.at(1).during_receive([&] { stage.clock().advance(300ms); });
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.at(1).last_seen(), stage.clock().now());
}

// A pause between the reading and the receive: only what the reading says is held against it.
TEST(session_engine_lease, judges_with_the_reading_before_the_last_receive) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.enters(2, {.lease = 10s});
    stage.forget();
    stage.at(1).during_receive([&] { stage.clock().advance(1h); });
    stage.passes(1s);
    EXPECT_FALSE(stage.engine().judge(9));
    EXPECT_EQ(stage.at(1).receives(), 0);
    stage.passes(1ns);
    stage.at(2).arrives("\x02");
    stage.judge();
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, expired, was owning for 1000000001 ns)",
                                    "granted(#2, token 2, waited 1000000001 ns)",
                                    "acknowledged(#2, owning, token 2)"}));
}

TEST(session_engine_lease, the_last_receive_finds_the_end_of_file) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.forget();
    stage.at(1).ends_with(receive_status::peer_closed);
    stage.passes_and_is_judged(2s);
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, graceful, was owning for 2000000000 ns)"}));
}

TEST(session_engine_lease, the_last_receive_finds_a_protocol_error) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.enters(2, {.lease = 60s});
    stage.forget();
    stage.at(1).arrives("\x02\x01");
    stage.passes_and_is_judged(2s);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#1 <- ERROR 0x12 'duplicate ACQUIRE'",
                                   "#2 <- ACQUIRED 2", "#1 lingers"}));
}

// Promotion never judges a lease.
TEST(session_engine_lease, a_waiter_whose_lease_has_passed_is_promoted_and_then_judged) {
    engine_stage stage;
    stage.enters(1, {.lease = 60s});
    stage.enters(2, {.lease = 1s});
    stage.enters(3, {.lease = 60s});
    stage.forget();
    stage.passes(2s);  // nobody has judged yet
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed"}));
    stage.at(2).arrives("\x02");
    stage.judge();
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2"}));
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 3", "#2 closed"}));
}

// The verdict of the local kernel is only silence (case S4).

TEST(session_engine_lease, a_silent_owner_keeps_the_lock_until_its_lease_has_passed) {
    engine_stage stage;
    stage.enters(1, {.lease = 20s});
    stage.enters(2, {.lease = 60s});
    stage.forget();
    stage.passes(3s);
    stage.falls_silent(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 dropped"}));
    stage.passes_and_is_judged(17s);
    EXPECT_EQ(stage.wire(), lines{});
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- ACQUIRED 2", "#1 closed"}));
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, expired, was owning for 20000000001 ns)",
                                    "granted(#2, token 2, waited 20000000001 ns)"}));
}

TEST(session_engine_lease, an_answer_that_meets_silence_mutes_the_owner) {
    engine_stage stage;
    stage.enters(1, {.lease = 20s});
    stage.forget();
    stage.passes(5s);
    stage.at(1).sending_ends_with(send_status::silence);
    stage.beats(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (silence)", "#1 dropped"}));
    stage.passes_and_is_judged(20s);
    EXPECT_TRUE(stage.has(1)) << "its heartbeat did arrive, and counts";
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(1));
}

TEST(session_engine_lease, a_claim_muted_by_its_first_answer_keeps_what_it_got) {
    engine_stage stage;
    stage.connects(1).sending_ends_with(send_status::silence);
    stage.claims(1, {.lease = 1s, .rest = "\x02"});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (silence)", "#1 dropped"}));
    EXPECT_EQ(stage.at(1).state(), session_state::owning);
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 closed"}));
}

TEST(session_engine_lease, a_silent_waiter_keeps_its_place_and_is_judged_after_its_promotion) {
    engine_stage stage;
    stage.enters(1, {.lease = 60s});
    stage.enters(2, {.lease = 10s});
    stage.enters(3, {.lease = 60s});
    stage.falls_silent(2);
    stage.forget();
    stage.passes(9s);
    stage.closes(1);
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, graceful, was owning for 9000000000 ns)",
                                    "granted(#2, token 2, waited 9000000000 ns)"}));
    EXPECT_EQ(stage.wire(), (lines{"#1 closed"})) << "there is nobody to tell";
    stage.passes_and_is_judged(1s);
    EXPECT_EQ(stage.wire(), lines{});
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 3", "#2 closed"}));
}

TEST(session_engine_lease, a_promotion_that_meets_silence_is_held_until_the_lease_has_passed) {
    engine_stage stage;
    stage.enters(1, {.lease = 60s});
    stage.enters(2, {.lease = 10s});
    stage.enters(3, {.lease = 60s});
    stage.at(2).sending_ends_with(send_status::silence);
    stage.forget();
    stage.closes(1);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- (silence)", "#2 dropped", "#1 closed"}));
    stage.passes_and_is_judged(10s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 3", "#2 closed"}));
}

TEST(session_engine_lease, silence_at_the_last_receive_is_no_reprieve) {
    engine_stage stage;
    stage.enters(1, {.lease = 1s});
    stage.at(1).ends_with(receive_status::silence);
    stage.forget();
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, expired, was owning for 1000000001 ns)"}));
}

TEST(session_engine_lease, a_muted_session_can_be_closed_with_an_error_that_goes_nowhere) {
    engine_stage stage;
    stage.enters(1);
    stage.falls_silent(1);
    stage.forget();
    stage.engine().close_with_error(stage.at(1), end_reason::force,
                                    protocol::error_code::closed_by_administrator);
    EXPECT_EQ(stage.everything(), (lines{"error_due(#1, 0x02 'closed by administrator')",
                                         "ended(#1, force, was owning for 0 ns)", "#1 lingers"}));
}

TEST(session_engine_lease, judges_no_more_than_its_budget) {
    engine_stage stage;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        stage.enters(id, {.name = "lock" + std::to_string(id), .lease = 1s});
    }
    stage.passes(1s + 1ns);
    EXPECT_TRUE(stage.engine().judge(2));
    EXPECT_EQ(stage.sessions().size(), 3U);
    EXPECT_LE(stage.engine().next_deadline(), stage.clock().now());
    EXPECT_TRUE(stage.engine().judge(2));
    EXPECT_EQ(stage.sessions().size(), 1U);
    EXPECT_FALSE(stage.engine().judge(2));
    EXPECT_TRUE(stage.sessions().empty());
    EXPECT_EQ(stage.engine().next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace monolock::core
