#include "core/session_engine.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/assert.hpp"

namespace monolock::core {

session_engine::session_engine(token_source& tokens, clock_port& clock, observer_port& observer,
                               options settings) noexcept
    : table_{tokens}, clock_{&clock}, observer_{&observer}, settings_{settings} {}

void session_engine::admit(connected_session& who, const protocol::acquire_request& request,
                           name_hash hash, time_point received_at,
                           std::span<const std::byte> rest) {
    table_.acquire(who, request.name, hash, std::chrono::milliseconds{request.lease_ms},
                   received_at, facts_);
    deliver_facts();
    if (who.flow_ == flow::open) {
        who.await_readable();
    }
    take_messages(who, rest, received_at);
    end_doomed();
}

void session_engine::readable(connected_session& who) {
    if (who.flow_ == flow::open) {
        receive_once(who);
        end_doomed();
    }
}

void session_engine::writable(connected_session& who) {
    if (who.flow_ == flow::blocked && may_act()) {
        if (!flush_backlog(who) && who.flow_ == flow::blocked) {
            who.await_writable();
        }
        end_doomed();
    }
}

// One receive a turn: who sends much does not keep the others waiting.
void session_engine::receive_once(connected_session& who) {
    const receive_result got = who.receive(input_);
    switch (got.status) {
        case receive_status::bytes: {
            const time_point now = clock_->now();  // clock rule 1
            who.await_readable();
            take_messages(who, std::span{input_}.first(got.count), now);
            return;
        }
        case receive_status::nothing:
            who.await_readable();
            return;
        case receive_status::peer_closed:
            doom(who);
            return;
        case receive_status::silence:
            mute(who);
            return;
    }
}

void session_engine::take_messages(connected_session& who, std::span<const std::byte> bytes,
                                   time_point now) {
    if (!may_act()) {
        refuse(who, end_reason::graceful,
               protocol::refusal(protocol::error_code::server_shutting_down));
        return;
    }
    for (const std::byte type : bytes) {
        if (const auto refusal = protocol::check_session_message(type)) {
            deliver_facts();  // the answers to what came before it go first
            refuse(who, end_reason::graceful, *refusal);
            return;
        }
        table_.heartbeat(who, now, facts_);
    }
    deliver_facts();
}

bool session_engine::judge(std::size_t budget) {
    while (budget > 0) {
        const time_point now = clock_->now();
        if (!blocked_.empty() && now - blocked_.front().since() > settings_.io_timeout) {
            --budget;
            judge_backlog(blocked_.front().who(), now);
        } else if (session* const suspect = table_.suspect(now, budget)) {
            judge_lease(connected(*suspect), now);
        } else {
            return budget == 0;
        }
        end_doomed();
    }
    return true;
}

// `now` was read before the receive (clock rule 2). Bytes that are there prove the client alive,
// however late this server looks.
void session_engine::judge_lease(connected_session& who, time_point now) {
    if (who.flow_ == flow::blocked && may_act()) {
        flush_backlog(who);
    }
    if (who.flow_ == flow::open) {
        const receive_result got = who.receive(input_);
        switch (got.status) {
            case receive_status::bytes: {
                const time_point heard_at = clock_->now();  // clock rule 1
                // Waited for already, but that may be a wait for the socket, and what an encrypted
                // connection keeps back of this has left the socket.
                who.await_readable();
                take_messages(who, std::span{input_}.first(got.count), heard_at);
                return;
            }
            case receive_status::peer_closed:
                doom(who);
                return;
            case receive_status::nothing:
            case receive_status::silence:
                break;
        }
    }
    if (who.flow_ != flow::doomed) {
        expire(who, now);
    }
}

void session_engine::judge_backlog(connected_session& who, time_point now) {
    MONOLOCK_ASSERT(who.flow_ == flow::blocked);
    if (may_act() && (flush_backlog(who) || who.flow_ != flow::blocked)) {
        return;
    }
    const time_point limit = who.backlog_->since() + settings_.io_timeout;
    if (now <= limit) {
        return;  // what was late is out, and the next frame has time left
    }
    // However late both are judged, the limit that came first gives the reason.
    if (who.last_seen() + who.lease() < limit) {
        expire(who, now);
    } else {
        finish(who, end_reason::io_timeout, closing::abort);
    }
}

std::optional<time_point> session_engine::next_deadline() const noexcept {
    std::optional<time_point> next = table_.next_deadline();
    if (!blocked_.empty()) {  // then there is a lease as well
        next = std::min(*next, blocked_.front().since() + settings_.io_timeout + nanoseconds{1});
    }
    return next;
}

void session_engine::close_with_error(connected_session& who, end_reason why,
                                      protocol::error_code code) {
    refuse(who, why, protocol::refusal(code));
    end_doomed();
}

// The last in each queue first: the end of a waiter can promote one that stands behind it (behind
// the head of an idle lock), and whoever is found there is allowed by then. So all that were found
// are still there when their turn comes, too.
std::size_t session_engine::revoke_waiters(
    const std::function<bool(const connected_session& who)>& is_allowed) {
    std::vector<connected_session*> revoked;
    table_.for_each_waiter([&](session& waiter) {
        if (!is_allowed(connected(waiter))) {
            revoked.push_back(&connected(waiter));
        }
    });
    std::reverse(revoked.begin(), revoked.end());
    for (connected_session* const each : revoked) {
        close_with_error(*each, end_reason::graceful, protocol::error_code::not_authorized);
    }
    return revoked.size();
}

void session_engine::retry_grants(std::size_t budget) {
    for (; budget > 0 && table_.idle_count() > 0; --budget) {
        table_.retry_grant(clock_->now(), facts_);
        deliver_facts();
        end_doomed();
    }
}

connected_session* session_engine::owner_of(std::string_view name, name_hash hash) noexcept {
    const named_lock* const lock = table_.find(name, hash);
    return lock == nullptr || lock->owner == nullptr ? nullptr : &connected(*lock->owner);
}

connected_session* session_engine::waiter_of(std::string_view name, name_hash hash,
                                             session_id id) noexcept {
    session* const found =
        table_.find_waiter(name, hash, [id](const session& who) { return who.id() == id; });
    return found == nullptr ? nullptr : &connected(*found);
}

bool session_engine::close_all(std::size_t budget, protocol::error_code code) {
    for (session* next = table_.any_session(); next != nullptr; next = table_.any_session()) {
        if (budget-- == 0) {
            return true;
        }
        close_with_error(connected(*next), end_reason::graceful, code);
    }
    return false;
}

// Facts become frames in their order; frames that follow each other to one session are written
// together, each whole and its own.
void session_engine::deliver_facts() {
    for (const fact& what : facts_) {
        frame_of(what);
    }
    write_pending_frames();
    for (const fact& what : facts_) {
        observer_->on_fact(what);
    }
    facts_.clear();
}

void session_engine::frame_of(const fact& what) {
    if (const auto* const ack = std::get_if<acknowledged>(&what)) {
        if (ack->state == session_state::owning) {
            push_frame(*ack->who, protocol::encode_acquired(ack->token));
        } else {
            push_frame(*ack->who, protocol::waiting_frame);
        }
    } else if (const auto* const grant = std::get_if<granted>(&what)) {
        push_frame(*grant->who, protocol::encode_acquired(grant->token));
    } else if (const auto* const wait = std::get_if<queued>(&what)) {
        push_frame(*wait->who, protocol::waiting_frame);
    }
}

void session_engine::push_frame(session& who, std::span<const std::byte> frame) {
    if (frames_to_ != &who) {
        write_pending_frames();
        frames_to_ = &connected(who);
    }
    frames_.insert(frames_.end(), frame.begin(), frame.end());
}

void session_engine::write_pending_frames() {
    if (connected_session* const who = std::exchange(frames_to_, nullptr)) {
        write(*who, frames_);
        frames_.clear();
    }
}

void session_engine::write(connected_session& who, std::span<const std::byte> bytes) {
    switch (who.flow_) {
        case flow::open:
            break;
        case flow::blocked:
            who.backlog_->append(bytes, clock_->now());
            return;
        case flow::mute:
        case flow::doomed:
            return;  // nobody is there to read it
    }
    const send_result did = who.send(bytes);
    switch (did.status) {
        case send_status::sent:
            if (did.count < bytes.size()) {
                hold_back(who, bytes.subspan(did.count));
            }
            return;
        case send_status::peer_closed:
            doom(who);
            return;
        case send_status::silence:
            mute(who);
            return;
    }
}

void session_engine::hold_back(connected_session& who, std::span<const std::byte> bytes) {
    who.backlog_ = std::make_unique<output_backlog>(who);
    who.backlog_->append(bytes, clock_->now());
    who.flow_ = flow::blocked;
    blocked_.push_back(*who.backlog_);
    who.await_writable();
}

// Whether everything is out, and the session open again. Progress does not extend the time of a
// frame that is not out yet: a later one's time counts only once all before it is.
bool session_engine::flush_backlog(connected_session& who) {
    output_backlog& backlog = *who.backlog_;
    const send_result did = who.send(backlog.bytes());
    switch (did.status) {
        case send_status::sent:
            backlog.remove(did.count);
            if (!backlog.empty()) {
                place_by_time(backlog);
                return false;
            }
            drop_backlog(who);
            who.flow_ = flow::open;
            who.await_readable();
            return true;
        case send_status::peer_closed:
            doom(who);
            return false;
        case send_status::silence:
            mute(who);
            return false;
    }
    return false;
}

// Its time may have moved on, and with it its place among the blocked.
void session_engine::place_by_time(output_backlog& backlog) noexcept {
    blocked_.erase(blocked_.iterator_to(backlog));
    auto place = blocked_.end();
    while (place != blocked_.begin() && std::prev(place)->since() > backlog.since()) {
        --place;
    }
    blocked_.insert(place, backlog);
}

void session_engine::drop_backlog(connected_session& who) noexcept {
    if (who.backlog_) {
        blocked_.erase(blocked_.iterator_to(*who.backlog_));
        who.backlog_.reset();
    }
}

// The ERROR is written, or dropped where the socket would block; then the lock moves on; only then
// the connection is given up, slowly enough for the ERROR to arrive.
void session_engine::refuse(connected_session& who, end_reason why,
                            const protocol::malformed& refusal) {
    if (who.flow_ == flow::doomed) {
        return;
    }
    observer_->on_error_due(who, refusal.code, refusal.reason);
    if (who.flow_ == flow::open) {
        static_cast<void>(who.send(protocol::encode_error(refusal.code, refusal.reason).bytes()));
    }
    finish(who, why, closing::linger);
}

void session_engine::expire(connected_session& who, time_point now) {
    drop_backlog(who);
    table_.expire(who, now, facts_);
    deliver_facts();
    who.retire(closing::plain);
}

void session_engine::finish(connected_session& who, end_reason why, closing how) {
    drop_backlog(who);
    table_.end(who, why, clock_->now(), facts_);
    deliver_facts();
    who.retire(how);
}

void session_engine::mute(connected_session& who) noexcept {
    drop_backlog(who);
    who.flow_ = flow::mute;
    who.drop_connection();
}

void session_engine::doom(connected_session& who) {
    who.flow_ = flow::doomed;
    doomed_.push_back(&who);
}

// Promotions write, writes find that the next peer is gone too, and so on down the queue: a loop,
// not a recursion.
void session_engine::end_doomed() {
    while (!doomed_.empty()) {
        connected_session& who = *doomed_.back();
        doomed_.pop_back();
        finish(who, end_reason::graceful, closing::plain);
    }
}

}  // namespace monolock::core
