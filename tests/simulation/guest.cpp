#include "simulation/guest.hpp"

#include <array>
#include <utility>

namespace monolock::simulation {

namespace {

constexpr sim_time wake_latency_max{200'000};

}  // namespace

// ---- the engine's port

claim_session::claim_session(guest& host)
    : connected_session{core::session_id{host.link().id()}}, host_{&host} {}

void claim_session::note_reading() noexcept {
    read_before = host_->shard().last_reading_;
    read_before_real = host_->shard().last_reading_real_;
}

core::receive_result claim_session::receive(std::span<std::byte> into) noexcept {
    server_shard& shard = host_->shard();
    shard.may_stop();
    if (!shard.alive()) {
        return {};
    }
    note_reading();
    shard.look_for_unread(*host_);
    const io_result got = host_->stream().read(into);
    core::receive_result result;
    switch (got.status) {
        case io_status::done:
            result = {.status = core::receive_status::bytes, .count = got.count};
            host_->last_receive = shard.world_->events.now();
            host_->shard().heard_ = this;
            shard.rules_->received(host_->record(), got.count);
            shard.rules_->mandate_to_be_seen(shard.number());
            break;
        case io_status::would_block:
            break;
        case io_status::unreadable:
            shard.rules_->cannot_read(host_->record(), host_->stream().records()->alert_sent());
            [[fallthrough]];
        case io_status::eof:
        case io_status::reset:
        case io_status::alerted:
            result.status = core::receive_status::peer_closed;
            shard.rules_->peer_closed(host_->record());
            break;
        case io_status::timed_out:
            result.status = core::receive_status::silence;
            break;
    }
    shard.may_stop();
    return result;
}

core::send_result claim_session::send(std::span<const std::byte> bytes) noexcept {
    server_shard& shard = host_->shard();
    shard.may_stop();
    if (!shard.alive()) {
        return {.count = bytes.size()};
    }
    note_reading();
    claim_record& record = host_->record();
    const io_result did = host_->stream().write(bytes);
    core::send_result result{.count = did.count};
    switch (did.status) {
        case io_status::done:
        case io_status::would_block:
            offered(bytes.size(), did.count, record.write_short);
            shard.rules_->wrote(record, bytes.first(did.count), bytes.size());
            break;
        case io_status::eof:
        case io_status::reset:
        case io_status::alerted:
        case io_status::unreadable:
            result.status = core::send_status::peer_closed;
            shard.rules_->peer_closed(record);
            shard.rules_->write_failed(record);
            break;
        case io_status::timed_out:
            result.status = core::send_status::silence;
            shard.rules_->write_failed(record);
            break;
    }
    shard.may_stop();
    return result;
}

void claim_session::offered(std::size_t bytes, std::size_t taken, bool were_held) {
    if (!were_held) {
        offered_ += bytes;
        if (taken < bytes) {
            held_.push_back({.bytes = bytes - taken});
            host_->shard().blocked_ = this;
        }
        return;
    }
    while (!held_.empty() && taken >= held_.front().bytes) {
        taken -= held_.front().bytes;
        held_.pop_front();
    }
    if (!held_.empty()) {
        held_.front().bytes -= taken;
    }
}

void claim_session::frame_stated(std::size_t bytes, nanoseconds reading) {
    stated_ += bytes;
    if (stated_ > offered_) {
        offered_ = stated_;
        held_.push_back({.bytes = bytes, .since = reading});
    }
}

// Asking again while a wait for the socket is under way must not be the same as not asking: the
// judgement of a lease reads too, and what it leaves inside has left the socket.
void claim_session::await_readable() {
    host_->wants_read = true;
    host_->input_held = host_->stream().holds_input();
    if (host_->input_held || host_->stream().socket_readable()) {
        host_->enqueue();
    }
}

void claim_session::await_writable() {
    host_->wants_write = true;
    if (host_->stream().socket_writable()) {
        host_->enqueue();
    }
}

void claim_session::drop_connection() noexcept {
    if (host_->shard().alive()) {
        dropped = true;
        host_->shard().rules_->write_failed(host_->record());
        host_->drop();
    }
}

void claim_session::retire(core::closing how) noexcept {
    server_shard& shard = host_->shard();
    if (shard.heard_ == this) {
        shard.heard_ = nullptr;
    }
    if (shard.blocked_ == this) {
        shard.blocked_ = nullptr;
    }
    guest& host = *host_;
    const std::unique_ptr<claim_session> self = std::move(host.session);
    if (!shard.alive()) {
        return;
    }
    shard.rules_->retired(host.record());
    switch (how) {
        case core::closing::plain:
            host.give_up();
            break;
        case core::closing::abort:
            host.abort();
            break;
        case core::closing::linger:
            host.linger();
            break;
    }
}

// ---- the connection

guest::guest(server_shard& shard, connection& link, descriptor_slots::slot slot)
    : shard_{&shard},
      link_{&link},
      stream_{*shard.world_, link, side::server},
      slot_{std::move(slot)} {
    link.own(side::server, this);
    time_out_in(shard.settings().io_timeout);
    if (stream_.socket_readable()) {
        enqueue();
    }
}

claim_record& guest::record() const {
    return shard_->rules_->of(link_->id());
}

void guest::on_ready(connection& /*link*/) {
    if (at == phase::moving) {
        return;  // nobody watches it
    }
    const bool due = at != phase::session || (wants_read && stream_.socket_readable()) ||
                     (wants_write && stream_.socket_writable());
    if (due) {
        enqueue();
    }
}

void guest::enqueue() {
    if (!queued) {
        queued = true;
        shard_->ready_.push_back(link_->id());
        shard_->schedule_turn(shard_->world_->random.between(sim_time{0}, wake_latency_max));
    }
}

// By the shard that has it now; one to which it moves has no business with this.
void guest::time_out_in(nanoseconds limit) {
    server_shard* const shard = shard_;
    const std::uint32_t id = link_->id();
    const phase of = at;
    const sim_time when = shard->process_->machine_->steady.when(shard->clock() + limit);
    shard->world_->events.at(when, [shard, id, of] {
        const auto found = shard->guests_.find(id);
        if (shard->alive() && found != shard->guests_.end()) {
            found->second->time_runs_out(of);
        }
    });
}

void guest::time_runs_out(phase of) {
    if (at == of) {
        timed_out_ = true;
        enqueue();
    }
}

void guest::serve() {
    switch (at) {
        case phase::handshake:
            read_acquire();
            break;
        case phase::session:
            serve_session();
            break;
        case phase::lingering:
            discard();
            break;
        case phase::moving:
        case phase::gone:
            break;
    }
}

void guest::read_acquire() {
    std::array<std::byte, core::session_engine::receive_bytes_max> input{};
    shard_->may_stop();
    if (!shard_->alive()) {
        return;
    }
    const io_result got = stream_.read(input);
    switch (got.status) {
        case io_status::done: {
            shard_->may_stop();
            take_acquire(std::span{input}.first(got.count),
                         shard_->now().time_since_epoch());  // clock rule 1
            return;
        }
        case io_status::would_block:
            if (timed_out_) {
                close();
            }
            return;
        case io_status::unreadable:
            shard_->rules_->cannot_read(record(), stream_.records()->alert_sent());
            give_up();
            return;
        case io_status::eof:
        case io_status::reset:
        case io_status::timed_out:
        case io_status::alerted:
            close();
            return;
    }
}

void guest::take_acquire(std::span<const std::byte> bytes, nanoseconds received_at) {
    if (!shard_->alive()) {
        return;
    }
    std::size_t used = 0;
    switch (decoder_.feed(bytes, used)) {
        case protocol::acquire_decoder::status::need_more:
            if (timed_out_) {
                close();
            } else if (stream_.holds_input() || stream_.socket_readable()) {
                enqueue();
            }
            return;
        case protocol::acquire_decoder::status::malformed:
            if (goes_on()) {
                refuse(decoder_.error());
            }
            return;
        case protocol::acquire_decoder::status::complete:
            break;
    }
    request_ = decoder_.take_request();
    received_at_ = received_at;
    const auto beyond = bytes.subspan(used);
    rest_.assign(beyond.begin(), beyond.end());
    if (!goes_on()) {
        return;
    }
    if (!shard_->access_.permits(record().identity, request_.name)) {
        deny();
        return;
    }
    record().permitted_by = shard_->access_.generation;
    hash_ = shard_->process_->hash_of(request_.name);
    server_shard& home = shard_->process_->home_of(hash_);
    if (&home == shard_) {
        admit();
        return;
    }
    at = phase::moving;
    queued = false;
    shard_->hand_over(*this, home);  // and it may be used no more
}

// While it was on its way the shard may have adopted newer rules, and sent its waiters away.
void guest::comes_home(server_shard& home) {
    shard_ = &home;
    if (!goes_on()) {
        return;
    }
    if (record().permitted_by < shard_->access_.generation &&
        !shard_->access_.permits(record().identity, request_.name)) {
        deny();
        return;
    }
    admit();
}

void guest::admit() {
    at = phase::session;
    admitted_at = shard_->world_->events.now();
    session = std::make_unique<claim_session>(*this);
    session->heard_at = received_at_;
    session->came_home = shard_->clock();
    claim_record& who = record();
    who.lease = milliseconds{request_.lease_ms};
    shard_->rules_->arrived(who, request_.name, *session, shard_->number());
    if (!rest_.empty()) {
        shard_->rules_->received(who, rest_.size());
    }
    shard_->engine_call([this] {
        shard_->engine_.admit(*session, request_, hash_, core::time_point{received_at_}, rest_);
    });
}

// The judgement of a lease may have read meanwhile what made the socket ready. A wake-up that the
// event loop had collected by then comes late; one that it had not does not come at all.
void guest::serve_session() {
    if (session && wants_write && stream_.socket_writable()) {
        wants_write = false;
        shard_->engine_call([this] { shard_->engine_.writable(*session); });
    }
    if (shard_->alive() && session && wants_read &&
        (input_held || stream_.socket_readable() || shard_->world_->random.chance(250'000))) {
        wants_read = false;
        input_held = false;
        shard_->engine_call([this] { shard_->engine_.readable(*session); });
    }
}

void guest::refuse(const protocol::malformed& why) {
    const auto frame = protocol::encode_error(why.code, why.reason);
    claim_record& who = record();
    shard_->rules_->error_due(who, why.code);
    const io_result did = stream_.write(frame.bytes());
    if (did.status == io_status::done) {
        shard_->rules_->wrote(who, frame.bytes().first(did.count), frame.bytes().size());
    }
    linger();
}

void guest::refuse(protocol::error_code code) {
    refuse({.code = code, .reason = std::string{protocol::canonical_reason(code)}});
}

// Without a mandate whoever has said something is sent away.
bool guest::goes_on() {
    const bool may_act = shard_->may_act();
    if (shard_->alive() && !may_act) {
        refuse(protocol::error_code::server_shutting_down);
    }
    return shard_->alive() && may_act;
}

void guest::deny() {
    shard_->rules_->denied(record(), request_.name, shard_->access_.generation);
    refuse(protocol::error_code::not_authorized);
}

void guest::linger() {
    at = phase::lingering;
    timed_out_ = false;
    stream_.linger();
    time_out_in(shard_->settings().io_timeout);
    enqueue();
}

void guest::discard() {
    std::array<std::byte, core::session_engine::receive_bytes_max> waste{};
    for (;;) {
        const io_result got = stream_.read(waste);
        if (got.status == io_status::would_block) {
            break;
        }
        if (got.status != io_status::done) {
            close();
            return;
        }
    }
    if (timed_out_) {
        record().excused = true;
        close();
    }
}

// A fatal alert of ours must arrive, like an ERROR.
void guest::give_up() {
    if (stream_.records() != nullptr && stream_.records()->failed()) {
        linger();
    } else {
        close();
    }
}

// The descriptor is gone, the session goes on.
void guest::drop() noexcept {
    link_->close(side::server);
    slot_ = {};
}

void guest::abort() {
    link_->abort(side::server);
    slot_ = {};
    at = phase::gone;
}

void guest::close() {
    stream_.close();
    slot_ = {};
    at = phase::gone;
}

}  // namespace monolock::simulation
