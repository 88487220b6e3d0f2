#include <algorithm>
#include <sstream>
#include <utility>
#include <variant>

#include "simulation/rules.hpp"

namespace monolock::simulation {

namespace {

seen_frame seen(const protocol::server_frame& frame) {
    if (std::holds_alternative<protocol::waiting>(frame)) {
        return {.type = protocol::server_message::waiting};
    }
    if (const auto* const grant = std::get_if<protocol::acquired>(&frame)) {
        return {.type = protocol::server_message::acquired, .token = grant->token.value};
    }
    return {.type = protocol::server_message::error};
}

std::string list(const std::vector<seen_frame>& frames) {
    std::ostringstream out;
    for (const seen_frame& frame : frames) {
        out << (frame.type == protocol::server_message::waiting ? " WAITING" : " ACQUIRED");
    }
    return frames.empty() ? " nothing" : out.str();
}

}  // namespace

void rules::touch(claim_record& who) {
    if (!who.touched) {
        who.touched = true;
        shard_book_of(who.shard).touched.push_back(&who);
    }
}

void rules::received(claim_record& who, std::size_t messages) {
    who.messages += messages;
    who.unanswered += messages;
    touch(who);
}

void rules::cannot_read(claim_record& who, bool alert_sent) {
    if (who.honest) {
        fail(rule::records_intact, who, "the server cannot open what the client sent");
    }
    who.alert_sent = alert_sent;
}

void rules::peer_closed(claim_record& who) {
    who.word_given = true;
    world_->told.announced(who.id, world_->events.now());
    touch(who);
}

// The access rules, the operator and a shutdown have a word of their own.
void rules::check_refusal(const claim_record& who, protocol::error_code code) const {
    const bool of_operator = code == protocol::error_code::closed_by_administrator;
    if (of_operator && !who.ordered_out && !who.sends) {
        fail(rule::force_as_ordered, who, "told that an operator ended it, and none did");
    }
    if ((of_operator && who.ordered_out) || code == protocol::error_code::server_shutting_down ||
        code == protocol::error_code::not_authorized) {
        return;
    }
    if (who.session != nullptr) {
        check_mandate(who, "its garbage is refused");
    }
    const std::uint64_t taken = who.session == nullptr ? 0 : who.answered + 1;
    if (!who.sends || who.sends->code != code || who.sends->behind != taken) {
        fail(rule::garbage_refused, who,
             "refused with " + std::to_string(static_cast<int>(code)) + " behind " +
                 std::to_string(taken) + " messages" +
                 (who.sends ? ", due is " + std::to_string(static_cast<int>(who.sends->code)) +
                                  " behind " + std::to_string(who.sends->behind)
                            : ", and all that it sends are messages"));
    }
}

void rules::check_mandate(const claim_record& who, const std::string& how) const {
    const std::optional<bool> in_force = shard_book_of(who.shard).in_force;
    if (!in_force) {
        fail(rule::mandate_asked, who, how + ", and nobody asked whether the server may");
    }
    if (!*in_force) {
        fail(rule::mandate_kept, who, how + ", and the server may not");
    }
}

void rules::check_sent_away(const claim_record& who) const {
    if (shard_book_of(who.shard).in_force == false) {
        ++world_->counts->sent_away;
    } else if (!shutdown_began_) {
        fail(rule::sent_away_for_cause, who, "told that the server shuts down, and it does not");
    } else {
        check_drain(who);
    }
}

void rules::error_due(claim_record& who, protocol::error_code code) {
    check_refusal(who, code);
    if (code == protocol::error_code::server_shutting_down && who.session != nullptr) {
        check_sent_away(who);
    }
    who.error_code_due = code;
    touch(who);
    ++world_->counts->refusals;
    who.word_given = true;
    world_->told.announced(who.id, world_->events.now());
    who.refused = true;
    who.unanswered = 0;
}

void rules::write_failed(claim_record& who) {
    who.write_failed = true;
}

void rules::wrote(claim_record& who, std::span<const std::byte> taken, std::size_t offered) {
    touch(who);
    const bool was_short = std::exchange(who.write_short, taken.size() < offered);
    if (was_short && who.session != nullptr && !taken.empty()) {
        check_mandate(who, "what was held back is written");
    }
    if (who.write_short) {
        who.short_write_at = world_->events.now();
    } else if (was_short) {
        who.unblocked_at = world_->events.now();
    }
    while (!taken.empty()) {
        std::size_t used = 0;
        switch (who.written_decoder.feed(taken, used)) {
            case protocol::server_frame_decoder::status::need_more:
                break;
            case protocol::server_frame_decoder::status::malformed:
                fail(rule::replies, who, "the server wrote what is no frame");
            case protocol::server_frame_decoder::status::frame: {
                if (who.error_written) {
                    fail(rule::replies, who, "a frame after an ERROR");
                }
                const seen_frame frame = seen(who.written_decoder.take_frame());
                if (frame.type == protocol::server_message::error) {
                    if (!who.refused) {
                        fail(rule::replies, who, "an ERROR that was not due");
                    }
                    who.error_written = true;
                } else {
                    who.written.push_back(frame);
                }
                break;
            }
        }
        taken = taken.subspan(used);
    }
}

// What has been written is what the facts said, but for what a full socket keeps back.
void rules::compare_frames(claim_record& who) {
    if (who.write_failed) {
        who.expected.clear();
        who.written.clear();
        return;
    }
    const bool all_there = who.written.size() >= who.expected.size();
    const bool same = who.written.size() <= who.expected.size() &&
                      std::equal(who.written.begin(), who.written.end(), who.expected.begin());
    if (!same || (!all_there && !who.write_short)) {
        fail(rule::replies, who,
             "expected" + list(who.expected) + ", the server wrote" + list(who.written));
    }
    who.expected.erase(who.expected.begin(),
                       who.expected.begin() + static_cast<std::ptrdiff_t>(who.written.size()));
    who.written.clear();
}

void rules::retired(claim_record& who) {
    compare_frames(who);
    who.session = nullptr;
    who.write_failed = true;  // nothing more is due
}

void rules::client_read(claim_record& who, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        std::size_t used = 0;
        switch (who.read_decoder.feed(bytes, used)) {
            case protocol::server_frame_decoder::status::need_more:
                break;
            case protocol::server_frame_decoder::status::malformed:
                fail(rule::replies_read, who, "a client read what is no frame");
            case protocol::server_frame_decoder::status::frame:
                read_frame(who, who.read_decoder.take_frame());
                break;
        }
        bytes = bytes.subspan(used);
    }
}

void rules::read_frame(claim_record& who, const protocol::server_frame& frame) {
    const seen_frame what = seen(frame);
    if (who.error_read) {
        fail(rule::replies_read, who, "a frame after an ERROR");
    }
    switch (what.type) {
        case protocol::server_message::error:
            who.error_read = true;
            who.error_code_read = std::get<protocol::error>(frame).code;
            if (who.error_code_read != who.error_code_due) {
                fail(rule::error_as_due, who, "read an ERROR with another code than was due");
            }
            return;
        case protocol::server_message::waiting:
            if (who.acquireds_read > 0) {
                fail(rule::replies_read, who, "WAITING after ACQUIRED");
            }
            ++who.waitings_read;
            if (!who.waiting_seen) {
                who.waiting_seen = world_->events.now();
            }
            break;
        case protocol::server_message::acquired:
            if (what.token == 0 || (who.token_read != 0 && what.token != who.token_read) ||
                (who.token != 0 && what.token != who.token)) {
                fail(rule::token_read, who,
                     "read token " + std::to_string(what.token) + ", granted " +
                         std::to_string(who.token));
            }
            who.token_read = what.token;
            ++who.acquireds_read;
            break;
    }
    if (who.answers_read() > who.messages) {
        fail(rule::replies_read, who, "more replies than messages");
    }
}

void rules::client_read_end(const claim_record& who, bool troubled,
                            std::optional<std::uint64_t> messages) {
    if (who.error_written && !who.error_read && !troubled && !who.excused) {
        fail(rule::error_arrives, who, "the connection ended and the ERROR did not arrive");
    }
    if (who.alert_sent && !who.alert_read && !troubled && !who.excused) {
        fail(rule::alert_arrives, who, "the connection ended and the alert did not arrive");
    }
    const bool whole = who.at == claim_record::stage::ended &&
                       who.reason == core::end_reason::graceful && !who.refused && !troubled &&
                       !who.excused;
    if (messages && whole) {
        if (who.answers_read() != *messages) {
            fail(rule::answered_before_fin, who,
                 std::to_string(*messages) + " messages before the FIN, " +
                     std::to_string(who.answers_read()) + " answers");
        }
    }
}

}  // namespace monolock::simulation
