// Replies that cannot be written: nothing is read meanwhile, the backlog is bounded, and whichever
// limit comes first ends the session under its own reason.

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/session_engine.hpp"
#include "support/engine_stage.hpp"

namespace monolock::core {
namespace {

using namespace std::chrono_literals;
using support::engine_stage;
using support::lines;

// Session 1 owns with a long lease and cannot be written to; 2 waits.
void block_the_owner(engine_stage& stage, std::chrono::milliseconds lease) {
    stage.enters(1, {.lease = lease});
    stage.enters(2, {.lease = 600s});
    stage.at(1).takes(0);
    stage.beats(1);
    stage.forget();
}

TEST(session_engine_output, sends_the_rest_when_there_is_room) {
    engine_stage stage;
    stage.connects(1).takes(4);
    stage.claims(1, {});
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (blocked)"}));
    EXPECT_TRUE(stage.at(1).awaits_writable());
    stage.makes_room(1, 3);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (blocked)"}));
    EXPECT_TRUE(stage.at(1).awaits_writable());
    stage.makes_room(1, 100);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1"}));
    EXPECT_FALSE(stage.at(1).awaits_writable());
    stage.beats(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1"}));
}

TEST(session_engine_output, keeps_frames_whole_and_in_order_wherever_a_write_stops) {
    for (std::size_t room = 0; room < 1 + 3 + 9; ++room) {
        engine_stage stage;
        stage.enters(1, {.lease = 600s});
        stage.connects(2).takes(room);
        stage.claims(2, {.rest = "\x02\x02\x02"});
        stage.closes(1);
        while (stage.at(2).awaits_writable()) {
            stage.makes_room(2, 1);
        }
        std::string seen;
        for (const auto& frame : stage.at(2).frames()) {
            seen += std::holds_alternative<protocol::waiting>(frame) ? "W" : "A";
        }
        EXPECT_EQ(seen, "WWWWA") << "stopped after " << room << " bytes";
    }
}

TEST(session_engine_output, reads_nothing_while_a_reply_is_blocked) {
    engine_stage stage;
    block_the_owner(stage, 600s);
    const int receives = stage.at(1).receives();
    stage.passes(1s);
    stage.at(1).arrives("\x02\x02");
    stage.engine().readable(stage.at(1));
    stage.engine().readable(stage.at(1));
    EXPECT_EQ(stage.at(1).receives(), receives);
    EXPECT_EQ(stage.at(1).last_seen(), stage.clock().now() - 1s);
    stage.makes_room(1, support::scripted_session::everything);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1"}));
    stage.wake_reader(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1 ACQUIRED 1"}));
}

// The most that can pile up: the answers to one receive, and one pushed grant.
TEST(session_engine_output, the_backlog_is_bounded) {
    engine_stage stage;
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.at(2).takes(0);
    stage.says(2, std::string(10 * session_engine::receive_bytes_max, '\x02'));
    stage.closes(1);
    stage.at(2).takes(support::scripted_session::everything);
    stage.wake_writer(2);
    EXPECT_EQ(stage.at(2).frames().size(), 1 + session_engine::receive_bytes_max + 1);
}

TEST(session_engine_output, a_blocked_write_ends_after_the_io_timeout) {
    engine_stage stage{5s};
    block_the_owner(stage, 600s);
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 5s + 1ns);
    stage.passes_and_is_judged(5s);
    EXPECT_EQ(stage.wire(), lines{});
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (blocked)", "#2 <- ACQUIRED 2", "#1 aborted"}));
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, io_timeout, was owning for 5000000001 ns)",
                                    "granted(#2, token 2, waited 5000000001 ns)"}));
}

TEST(session_engine_output, progress_does_not_extend_the_io_timeout) {
    engine_stage stage{5s};
    block_the_owner(stage, 600s);
    for (int second = 1; second <= 5; ++second) {
        stage.passes_and_is_judged(1s);
        stage.makes_room(1, 1);
    }
    ASSERT_TRUE(stage.has(1));
    stage.at(1).takes(1);
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(1));
    EXPECT_EQ(stage.facts().front(), "ended(#1, io_timeout, was owning for 5000000001 ns)");
}

// A promotion pushed into a backlog has the I/O timeout from its own time, once what is ahead of it
// is out.
TEST(session_engine_output, a_push_behind_a_blocked_reply_has_its_own_time) {
    engine_stage stage{5s};
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.at(2).takes(0);
    stage.beats(2);
    stage.passes(4s);
    stage.closes(1);
    stage.passes(500ms);
    stage.makes_room(2, 1);  // the WAITING
    stage.passes_and_is_judged(4500ms);
    EXPECT_TRUE(stage.has(2));
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(2));
}

// What is ahead of it may go out in any pieces.
TEST(session_engine_output, a_push_has_its_own_time_however_what_is_ahead_of_it_goes_out) {
    engine_stage stage{5s};
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.at(2).takes(0);
    stage.says(2, "\x02\x02\x02");
    stage.passes(4s);
    stage.closes(1);
    for (int piece = 0; piece < 3; ++piece) {
        stage.makes_room(2, 1);  // a WAITING
    }
    stage.passes_and_is_judged(5s);
    EXPECT_TRUE(stage.has(2));
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(2));
}

// The same, and it is the judgement's own last send that gets out what is ahead of the push.
TEST(session_engine_output, the_last_send_can_leave_a_frame_that_has_time_left) {
    engine_stage stage{5s};
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.at(2).takes(0);
    stage.beats(2);
    stage.passes(4s);
    stage.closes(1);
    stage.at(2).takes(1);  // the WAITING
    stage.forget();
    stage.passes_and_is_judged(1s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- WAITING (blocked)"}));
    stage.passes_and_is_judged(4s - 1ns);
    EXPECT_TRUE(stage.has(2)) << "at its time, and not beyond it";
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(2));
}

TEST(session_engine_output, a_frame_left_by_the_last_send_has_all_of_its_time) {
    engine_stage stage{5s};
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.at(2).takes(0);
    stage.beats(2);
    stage.passes(4s);
    stage.closes(1);
    stage.at(2).takes(1);  // the WAITING, when the server looks again
    stage.passes_and_is_judged(5s);
    EXPECT_TRUE(stage.has(2));
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(2));
}

TEST(session_engine_output, the_io_timeout_begins_anew_with_another_block) {
    engine_stage stage{5s};
    block_the_owner(stage, 600s);
    stage.passes(4s);
    stage.makes_room(1, 9);
    stage.beats(1);
    stage.passes_and_is_judged(5s);
    EXPECT_TRUE(stage.has(1));
    stage.passes_and_is_judged(1ns);
    EXPECT_FALSE(stage.has(1));
}

TEST(session_engine_output, tries_a_last_send_before_it_judges) {
    engine_stage stage{5s};
    block_the_owner(stage, 600s);
    stage.at(1).takes(9);  // the peer has read; the server was stalled
    stage.passes_and_is_judged(1h);
    EXPECT_EQ(stage.wire(),
              (lines{"#1 <- ACQUIRED 1", "#2 <- ACQUIRED 2", "#1 closed", "#2 closed"}))
        << "the write came through, and then an hour of silence was judged";
}

TEST(session_engine_output, a_stalled_server_judges_neither_the_write_nor_the_lease) {
    engine_stage stage{5s};
    block_the_owner(stage, 600s);
    stage.at(1).takes(support::scripted_session::everything);
    stage.at(1).arrives("\x02");
    stage.passes_and_is_judged(1h);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- ACQUIRED 1", "#1 <- ACQUIRED 1", "#2 closed"}));
}

TEST(session_engine_output, the_lease_ends_a_blocked_session_if_it_comes_first) {
    engine_stage stage{5s};
    block_the_owner(stage, 3s);
    stage.passes_and_is_judged(3s);
    EXPECT_TRUE(stage.has(1));
    const int receives = stage.at(1).receives();
    stage.at(1).arrives("\x02");  // not read while the reply is blocked
    EXPECT_EQ(stage.at(1).receives(), receives);
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.facts(), (lines{"ended(#1, expired, was owning for 3000000001 ns)",
                                    "granted(#2, token 2, waited 3000000001 ns)"}));
}

// However late it is judged.
TEST(session_engine_output, the_limit_that_came_first_gives_the_reason) {
    for (const auto& [lease, reason] : {std::pair{3s, "expired"}, std::pair{7s, "io_timeout"}}) {
        engine_stage stage{5s};
        block_the_owner(stage, lease);
        stage.passes_and_is_judged(10s);
        EXPECT_EQ(stage.facts().front(),
                  std::string{"ended(#1, "} + reason + ", was owning for 10000000000 ns)");
    }
}

TEST(session_engine_output, a_blocked_peer_that_resets_frees_its_lock_at_once) {
    engine_stage stage;
    block_the_owner(stage, 600s);
    stage.at(1).sending_ends_with(send_status::peer_closed);
    stage.wake_writer(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (broken)", "#2 <- ACQUIRED 2", "#1 closed"}));
}

TEST(session_engine_output, room_that_turns_out_to_be_silence_leaves_the_lease) {
    engine_stage stage;
    block_the_owner(stage, 600s);
    stage.at(1).sending_ends_with(send_status::silence);
    stage.wake_writer(1);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (silence)", "#1 dropped"}));
    EXPECT_FALSE(stage.at(1).awaits_writable());
    stage.passes_and_is_judged(600s + 1ns);
    EXPECT_FALSE(stage.has(1));
}

TEST(session_engine_output, the_last_send_can_find_the_peer_gone) {
    for (const auto lease : {600s, 3s}) {
        engine_stage stage{5s};
        block_the_owner(stage, lease);
        stage.at(1).sending_ends_with(send_status::peer_closed);
        stage.passes_and_is_judged(std::min<nanoseconds>(lease, 5s) + 1ns);
        EXPECT_EQ(stage.facts().front().substr(0, 19), "ended(#1, graceful,");
    }
}

TEST(session_engine_output, silence_turns_the_io_timeout_into_the_lease) {
    engine_stage stage{5s};
    block_the_owner(stage, 20s);
    stage.at(1).sending_ends_with(send_status::silence);
    stage.passes_and_is_judged(5s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (silence)", "#1 dropped"}));
    stage.passes_and_is_judged(15s - 1ns);
    EXPECT_TRUE(stage.has(1));
    stage.passes_and_is_judged(1ns);
    EXPECT_EQ(stage.facts().front(), "ended(#1, expired, was owning for 20000000001 ns)");
}

TEST(session_engine_output, an_error_is_dropped_where_the_socket_would_block) {
    engine_stage stage;
    block_the_owner(stage, 600s);
    stage.engine().close_with_error(stage.at(1), end_reason::force,
                                    protocol::error_code::closed_by_administrator);
    EXPECT_EQ(stage.everything(),
              (lines{"error_due(#1, 0x02 'closed by administrator')", "#2 <- ACQUIRED 2",
                     "ended(#1, force, was owning for 0 ns)", "granted(#2, token 2, waited 0 ns)",
                     "#1 lingers"}));
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 600s + 1ns)
        << "the backlog went with the session";
}

TEST(session_engine_output, a_protocol_error_behind_an_answer_that_blocks) {
    engine_stage stage;
    stage.enters(1);
    stage.forget();
    stage.at(1).takes(0);
    stage.says(1, "\x02\x01");
    EXPECT_EQ(stage.wire(), (lines{"#1 <- (blocked)", "#1 lingers"}));
}

TEST(session_engine_output, one_blocked_peer_delays_no_other) {
    engine_stage stage;
    block_the_owner(stage, 600s);
    stage.enters(3, {.name = "other"});
    stage.beats(2);
    EXPECT_EQ(stage.wire(), (lines{"#3 <- ACQUIRED 2", "#2 <- WAITING"}));
}

TEST(session_engine_output, judges_no_more_of_the_blocked_than_its_budget) {
    engine_stage stage{5s};
    for (std::uint64_t id = 1; id <= 5; ++id) {
        stage.enters(id, {.name = "lock" + std::to_string(id), .lease = 600s});
        stage.at(id).takes(0);
        stage.beats(id);
    }
    stage.passes(5s + 1ns);
    EXPECT_TRUE(stage.engine().judge(0));
    EXPECT_EQ(stage.sessions().size(), 5U);
    EXPECT_TRUE(stage.engine().judge(1));
    EXPECT_EQ(stage.sessions().size(), 4U);
    EXPECT_TRUE(stage.engine().judge(3));
    EXPECT_EQ(stage.sessions().size(), 1U);
    EXPECT_FALSE(stage.engine().judge(2));
    EXPECT_TRUE(stage.sessions().empty());
}

// Its first frame was blocked before the other's; the one that is left came later.
TEST(session_engine_output, whose_first_frame_is_out_stands_behind_those_blocked_meanwhile) {
    engine_stage stage{5s};
    stage.enters(1, {.lease = 600s});
    stage.enters(2, {.lease = 600s});
    stage.enters(3, {.name = "other", .lease = 600s});
    stage.at(2).takes(0);
    stage.beats(2);
    stage.passes(2s);
    stage.at(3).takes(0);
    stage.beats(3);
    stage.passes(1s);
    stage.closes(1);
    stage.makes_room(2, 1);  // the WAITING; the ACQUIRED stays
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 4s + 1ns);
    stage.passes_and_is_judged(4s + 1ns);
    EXPECT_FALSE(stage.has(3));
    EXPECT_TRUE(stage.has(2));
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 1s);
}

TEST(session_engine_output, the_longest_blocked_is_judged_first) {
    engine_stage stage{5s};
    for (std::uint64_t id = 1; id <= 3; ++id) {
        stage.enters(id, {.name = "lock" + std::to_string(id), .lease = 600s});
    }
    for (const std::uint64_t id : {2U, 3U, 1U}) {
        stage.at(id).takes(0);
        stage.beats(id);
        stage.passes(1s);
    }
    stage.makes_room(3, 9);
    stage.forget();
    stage.passes_and_is_judged(2s + 1ns);
    EXPECT_EQ(stage.wire(), (lines{"#2 <- (blocked)", "#2 aborted"}));
    EXPECT_EQ(stage.engine().next_deadline(), stage.clock().now() + 2s);
}

}  // namespace
}  // namespace monolock::core
