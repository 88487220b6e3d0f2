#include "client/claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace monolock::detail {

// What gtest prints when a dialogue goes another way.
void PrintTo(claim_state state, std::ostream* out) {
    constexpr std::array names{"requesting", "waiting", "held", "lost"};
    *out << names.at(static_cast<std::size_t>(state));
}

void PrintTo(const claim_loss& loss, std::ostream* out) {
    constexpr std::array kinds{"acquire_timeout", "heartbeat_timeout", "connection_closed",
                               "protocol_violation", "server_error"};
    constexpr std::array violations{"none",       "unsolicited_answer", "waiting_after_acquired",
                                    "zero_token", "changed_token",      "unknown_type",
                                    "tls_alert"};
    *out << kinds.at(static_cast<std::size_t>(loss.kind)) << " during ";
    PrintTo(loss.during, out);
    *out << ", violation " << violations.at(static_cast<std::size_t>(loss.what)) << ", code "
         << static_cast<int>(loss.code) << " \"" << loss.reason << '"';
}

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

claim_time at(std::chrono::nanoseconds since_start) {
    return claim_time{1h + since_start};
}

std::string bytes_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string waiting = "\x11";
const std::string heartbeat = "\x02";

std::string acquired(std::uint64_t token) {
    return bytes_of(protocol::encode_acquired({token}));
}

std::string error(std::uint8_t code, std::string_view reason) {
    return bytes_of(
        protocol::encode_error(static_cast<protocol::error_code>(code), reason).bytes());
}

// A claim on "n" with a lease of 1 s (so the deadline is 800 ms and the base interval 250 ms), and
// the two sides of its dialogue.
class claim_dialogue : public testing::Test {
protected:
    // The claim speaks: everything that it has to say at that time, taken whole by the kernel.
    std::string speaks(std::chrono::nanoseconds time) {
        std::string said = bytes_of(subject.output(at(time)));
        subject.transmitted(said.size());
        return said;
    }

    // The server's bytes arrive; the turn ends with the judgement, as the driver's do.
    claim_state hears(std::chrono::nanoseconds time, const std::string& bytes) {
        subject.receive(std::as_bytes(std::span{bytes}), at(time));
        subject.judge(at(time));
        return subject.state();
    }

    claim_state silence(std::chrono::nanoseconds time) { return hears(time, ""); }

    void request() { ASSERT_EQ(speaks(0ms), acquire); }

    void be_queued() {
        request();
        ASSERT_EQ(hears(10ms, waiting), claim_state::waiting);
    }

    void be_granted() {
        request();
        ASSERT_EQ(hears(10ms, acquired(7)), claim_state::held);
    }

    void expect_violation(violation what, claim_state during) {
        EXPECT_EQ(subject.loss(), (claim_loss{.kind = loss_kind::protocol_violation,
                                              .during = during,
                                              .what = what,
                                              .code = {},
                                              .reason = {}}));
    }

    const std::string acquire{"\x01\x01\x00\x00\x03\xe8\x00\x01n", 9};
    claim subject{"n", 1000ms};
};

TEST_F(claim_dialogue, is_granted_at_once_and_beats_until_the_server_falls_silent) {
    EXPECT_EQ(subject.state(), claim_state::requesting);
    EXPECT_EQ(subject.next_wakeup(), std::nullopt);
    EXPECT_EQ(speaks(0ms), acquire);
    EXPECT_EQ(speaks(1ms), "");
    EXPECT_EQ(subject.next_wakeup(), at(800ms));

    EXPECT_EQ(hears(10ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.token(), protocol::fencing_token{7});
    EXPECT_EQ(subject.confirmed_until(), at(800ms)) << "counted from sending, not from the grant";
    EXPECT_EQ(subject.smoothed_rtt(), 10ms);
    EXPECT_EQ(subject.next_wakeup(), at(230ms)) << "250 ms - 2 x 10 ms after the last send";

    EXPECT_EQ(speaks(229ms), "");
    EXPECT_EQ(speaks(231ms), heartbeat);
    EXPECT_EQ(subject.next_wakeup(), at(800ms));
    EXPECT_EQ(hears(241ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1031ms));

    EXPECT_EQ(speaks(461ms), heartbeat);
    EXPECT_EQ(speaks(900ms), "") << "at most one heartbeat in flight";
    EXPECT_EQ(silence(1030ms), claim_state::held);
    EXPECT_EQ(silence(1031ms), claim_state::lost);
    EXPECT_EQ(subject.loss().kind, loss_kind::heartbeat_timeout);
    EXPECT_EQ(subject.loss().during, claim_state::held);
    EXPECT_EQ(subject.next_wakeup(), std::nullopt);
    EXPECT_EQ(speaks(1032ms), "");
}

TEST_F(claim_dialogue, waits_in_the_queue_with_heartbeats_and_is_promoted_by_a_push) {
    be_queued();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(240ms, waiting), claim_state::waiting);
    EXPECT_EQ(hears(300ms, acquired(8)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1030ms)) << "a push confirms nothing new";
    EXPECT_EQ(subject.next_wakeup(), at(460ms));
    EXPECT_EQ(speaks(460ms), heartbeat);
    EXPECT_EQ(hears(470ms, acquired(8)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1260ms));
}

TEST_F(claim_dialogue, takes_the_push_for_no_answer_while_a_heartbeat_is_in_flight) {
    be_queued();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(235ms, acquired(8)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(800ms)) << "the heartbeat is still unanswered";
    EXPECT_EQ(speaks(600ms), "");
    EXPECT_EQ(subject.next_wakeup(), at(800ms));

    EXPECT_EQ(hears(610ms, acquired(8)), claim_state::held) << "this one answers it";
    EXPECT_EQ(subject.confirmed_until(), at(1030ms));
}

TEST_F(claim_dialogue, hears_the_answer_and_the_push_in_one_segment) {
    be_queued();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(240ms, waiting + acquired(8)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1030ms));
    EXPECT_EQ(hears(245ms, acquired(8)), claim_state::lost);
    expect_violation(violation::unsolicited_answer, claim_state::held);
}

TEST_F(claim_dialogue, is_queued_and_promoted_in_one_segment_cut_at_every_byte) {
    const std::string both = waiting + acquired(8);
    for (std::size_t cut = 0; cut <= both.size(); ++cut) {
        subject = claim{"n", 1000ms};
        request();
        hears(10ms, both.substr(0, cut));
        EXPECT_EQ(hears(20ms, both.substr(cut)), claim_state::held) << "cut at " << cut;
        EXPECT_EQ(subject.confirmed_until(), at(800ms));
        EXPECT_TRUE(subject.was_queued());
    }
}

TEST_F(claim_dialogue, never_takes_a_grant_that_comes_after_the_deadline) {
    request();
    EXPECT_EQ(hears(800ms, acquired(7)), claim_state::lost);
    EXPECT_FALSE(subject.owns(at(800ms)));
}

TEST_F(claim_dialogue, never_takes_a_push_that_comes_after_the_deadline) {
    be_queued();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(801ms, acquired(7)), claim_state::lost);
    EXPECT_EQ(subject.loss().kind, loss_kind::heartbeat_timeout);
}

TEST_F(claim_dialogue, gives_up_an_acquire_that_nobody_answers) {
    request();
    EXPECT_EQ(silence(799ms), claim_state::requesting);
    EXPECT_EQ(silence(800ms), claim_state::lost);
    EXPECT_EQ(subject.loss().kind, loss_kind::acquire_timeout);
    EXPECT_EQ(subject.loss().during, claim_state::requesting);
    EXPECT_FALSE(subject.admitted());
    EXPECT_FALSE(subject.was_queued());
}

TEST_F(claim_dialogue, takes_a_grant_held_back_for_half_a_lease_and_counts_from_sending) {
    request();
    EXPECT_EQ(hears(500ms, acquired(7)), claim_state::held);
    EXPECT_TRUE(subject.owns(at(799ms)));
    EXPECT_FALSE(subject.owns(at(800ms))) << "lost, though nobody has judged it yet";
    EXPECT_EQ(subject.state(), claim_state::held);
}

TEST_F(claim_dialogue, reads_an_answer_that_was_in_the_socket_before_it_judges_itself) {
    be_granted();
    EXPECT_EQ(speaks(230ms), heartbeat);
    // The process stood still from here; the answer had come long before it runs again.
    EXPECT_EQ(hears(1000ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1030ms));
}

TEST_F(claim_dialogue, does_not_beat_past_its_deadline) {
    be_granted();
    EXPECT_EQ(speaks(800ms), "");
    EXPECT_LE(*subject.next_wakeup(), at(800ms)) << "so the driver turns at once and judges";
    EXPECT_EQ(silence(800ms), claim_state::lost);
}

TEST_F(claim_dialogue, survives_replies_a_third_of_a_lease_late_and_not_those_later_than_the_rule) {
    be_granted();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(580ms, acquired(7)), claim_state::held);
    EXPECT_EQ(speaks(580ms), heartbeat) << "the interval has passed while the reply was late";
    EXPECT_EQ(hears(930ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(1380ms));
}

TEST_F(claim_dialogue, keeps_the_send_time_of_the_first_byte_when_the_kernel_takes_few) {
    EXPECT_EQ(bytes_of(subject.output(at(0ms))), acquire);
    subject.transmitted(0);
    EXPECT_EQ(bytes_of(subject.output(at(100ms))), acquire);
    subject.transmitted(4);
    EXPECT_EQ(bytes_of(subject.output(at(200ms))), acquire.substr(4));
    subject.transmitted(acquire.size() - 4);
    EXPECT_EQ(speaks(300ms), "");
    EXPECT_EQ(hears(400ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.confirmed_until(), at(800ms));
}

TEST_F(claim_dialogue, beats_four_times_a_lease_when_the_lease_is_under_the_floor) {
    subject = claim{"n", 40ms};
    EXPECT_EQ(speaks(0ms).size(), acquire.size());
    EXPECT_EQ(hears(3ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.next_wakeup(), at(10ms));
}

TEST_F(claim_dialogue, takes_an_error_at_any_time_with_its_code_and_reason) {
    const auto refusal = [](claim_state during) {
        return claim_loss{.kind = loss_kind::server_error,
                          .during = during,
                          .what = violation::none,
                          .code = protocol::error_code::closed_by_administrator,
                          .reason = "bye"};
    };
    EXPECT_EQ(hears(0ms, error(2, "bye")), claim_state::lost) << "before anything was sent";
    EXPECT_EQ(subject.loss(), refusal(claim_state::requesting));

    subject = claim{"n", 1000ms};
    be_queued();
    EXPECT_EQ(hears(20ms, error(2, "bye")), claim_state::lost);
    EXPECT_EQ(subject.loss(), refusal(claim_state::waiting));
    EXPECT_TRUE(subject.admitted());

    subject = claim{"n", 1000ms};
    be_granted();
    EXPECT_EQ(speaks(240ms), heartbeat);
    EXPECT_EQ(hears(241ms, error(2, "bye") + acquired(7)), claim_state::lost);
    EXPECT_EQ(subject.loss(), refusal(claim_state::held));
}

TEST_F(claim_dialogue, keeps_the_error_when_the_connection_closes_after_it) {
    be_granted();
    EXPECT_EQ(hears(20ms, error(1, "")), claim_state::lost);
    subject.close();
    EXPECT_EQ(subject.loss().kind, loss_kind::server_error);
}

TEST_F(claim_dialogue, is_lost_when_the_connection_closes) {
    be_granted();
    EXPECT_EQ(hears(20ms, error(1, "cut off").substr(0, 5)), claim_state::held);
    subject.close();
    EXPECT_EQ(subject.state(), claim_state::lost);
    EXPECT_EQ(subject.loss().kind, loss_kind::connection_closed);
    EXPECT_FALSE(subject.owns(at(21ms)));
    EXPECT_EQ(subject.token(), protocol::fencing_token{7}) << "kept for the report";
}

TEST_F(claim_dialogue, refuses_an_answer_to_nothing) {
    EXPECT_EQ(hears(0ms, waiting), claim_state::lost);
    expect_violation(violation::unsolicited_answer, claim_state::requesting);

    subject = claim{"n", 1000ms};
    be_queued();
    EXPECT_EQ(hears(20ms, waiting), claim_state::lost);
    expect_violation(violation::unsolicited_answer, claim_state::waiting);

    subject = claim{"n", 1000ms};
    be_granted();
    EXPECT_EQ(hears(20ms, acquired(7)), claim_state::lost);
    expect_violation(violation::unsolicited_answer, claim_state::held);
}

TEST_F(claim_dialogue, refuses_an_answer_to_an_acquire_that_is_not_wholly_sent) {
    static_cast<void>(subject.output(at(0ms)));
    subject.transmitted(3);
    EXPECT_EQ(hears(1ms, acquired(7)), claim_state::lost);
    expect_violation(violation::unsolicited_answer, claim_state::requesting);
}

TEST_F(claim_dialogue, refuses_waiting_after_acquired) {
    be_granted();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(231ms, waiting), claim_state::lost);
    expect_violation(violation::waiting_after_acquired, claim_state::held);
}

TEST_F(claim_dialogue, refuses_a_token_of_zero_and_a_token_that_changes) {
    request();
    EXPECT_EQ(hears(1ms, acquired(0)), claim_state::lost);
    expect_violation(violation::zero_token, claim_state::requesting);

    subject = claim{"n", 1000ms};
    be_queued();
    EXPECT_EQ(hears(20ms, acquired(0)), claim_state::lost);
    expect_violation(violation::zero_token, claim_state::waiting);

    subject = claim{"n", 1000ms};
    be_granted();
    EXPECT_EQ(speaks(230ms), heartbeat);
    EXPECT_EQ(hears(231ms, acquired(8)), claim_state::lost);
    expect_violation(violation::changed_token, claim_state::held);
}

TEST_F(claim_dialogue, refuses_every_byte_that_no_frame_starts_with) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (byte >= 0x11 && byte <= 0x13) {
            continue;
        }
        subject = claim{"n", 1000ms};
        be_granted();
        EXPECT_EQ(hears(20ms, std::string(1, static_cast<char>(byte))), claim_state::lost);
        expect_violation(violation::unknown_type, claim_state::held);
    }
}

TEST_F(claim_dialogue, refuses_a_first_byte_that_is_neither_a_frames_nor_tls) {
    request();
    EXPECT_EQ(hears(1ms, "\x16"), claim_state::lost);
    expect_violation(violation::unknown_type, claim_state::requesting);
}

// The reading with an answer may be older than the one with which its message was sent.
TEST_F(claim_dialogue, a_round_trip_is_never_less_than_nothing) {
    EXPECT_EQ(speaks(5ms), acquire);
    EXPECT_EQ(hears(3ms, acquired(7)), claim_state::held);
    EXPECT_EQ(subject.smoothed_rtt(), 0ns);
}

// What a TLS server may answer to plain bytes; later it is a byte like any other.
TEST_F(claim_dialogue, tells_a_server_that_speaks_tls) {
    request();
    EXPECT_EQ(hears(1ms, "\x15\x03"), claim_state::lost);
    expect_violation(violation::tls_alert, claim_state::requesting);

    subject = claim{"n", 1000ms};
    be_granted();
    EXPECT_EQ(hears(20ms, "\x15"), claim_state::lost);
    expect_violation(violation::unknown_type, claim_state::held);
}

TEST_F(claim_dialogue, says_and_hears_nothing_more_once_lost) {
    be_granted();
    subject.close();
    EXPECT_EQ(hears(20ms, acquired(9)), claim_state::lost);
    EXPECT_EQ(speaks(230ms), "");
    EXPECT_EQ(silence(5000ms), claim_state::lost);
    EXPECT_EQ(subject.loss().kind, loss_kind::connection_closed);
    EXPECT_EQ(subject.token(), protocol::fencing_token{7});
}

}  // namespace
}  // namespace monolock::detail
