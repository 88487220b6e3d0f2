#include "simulation/guest.hpp"

#include <array>
#include <utility>

namespace monolock::simulation {

namespace {

// Fixed, so that a run depends on its seed alone.
constexpr core::name_hasher::key hash_key{'s', 'i', 'm', 'u', 'l', 'a', 't', 'e'};

}  // namespace

// ---- the engine's port

claim_session::claim_session(guest& host)
    : connected_session{core::session_id{host.link().id()}}, host_{&host} {}

void claim_session::note_reading() noexcept {
    read_before = host_->server().last_reading_;
    read_before_real = host_->server().last_reading_real_;
}

core::receive_result claim_session::receive(std::span<std::byte> into) noexcept {
    server_process& server = host_->server();
    server.may_stop();
    if (!server.alive_) {
        return {};
    }
    note_reading();
    const io_result got = host_->stream().read(into);
    core::receive_result result;
    switch (got.status) {
        case io_status::done:
            result = {.status = core::receive_status::bytes, .count = got.count};
            host_->last_receive = server.world_->events.now();
            host_->server().heard_ = this;
            server.rules_->received(host_->record(), got.count);
            break;
        case io_status::would_block:
            break;
        case io_status::unreadable:
            server.rules_->cannot_read(host_->record(), host_->stream().records()->alert_sent());
            [[fallthrough]];
        case io_status::eof:
        case io_status::reset:
        case io_status::alerted:
            result.status = core::receive_status::peer_closed;
            server.rules_->peer_closed(host_->record());
            break;
        case io_status::timed_out:
            result.status = core::receive_status::silence;
            break;
    }
    server.may_stop();
    return result;
}

core::send_result claim_session::send(std::span<const std::byte> bytes) noexcept {
    server_process& server = host_->server();
    server.may_stop();
    if (!server.alive_) {
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
            server.rules_->wrote(record, bytes.first(did.count), bytes.size());
            break;
        case io_status::eof:
        case io_status::reset:
        case io_status::alerted:
        case io_status::unreadable:
            result.status = core::send_status::peer_closed;
            server.rules_->peer_closed(record);
            server.rules_->write_failed(record);
            break;
        case io_status::timed_out:
            result.status = core::send_status::silence;
            server.rules_->write_failed(record);
            break;
    }
    server.may_stop();
    return result;
}

void claim_session::offered(std::size_t bytes, std::size_t taken, bool were_held) {
    if (!were_held) {
        offered_ += bytes;
        if (taken < bytes) {
            held_.push_back({.bytes = bytes - taken});
            host_->server().blocked_ = this;
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
    if (host_->server().alive_) {
        dropped = true;
        host_->server().rules_->write_failed(host_->record());
        host_->link().close(side::server);
    }
}

void claim_session::retire(core::closing how) noexcept {
    server_process& server = host_->server();
    if (server.heard_ == this) {
        server.heard_ = nullptr;
    }
    if (server.blocked_ == this) {
        server.blocked_ = nullptr;
    }
    guest& host = *host_;
    const std::unique_ptr<claim_session> self = std::move(host.session);
    if (!server.alive_) {
        return;
    }
    server.rules_->retired(host.record());
    switch (how) {
        case core::closing::plain:
            host.give_up();
            break;
        case core::closing::abort:
            host.link().abort(side::server);
            host.at = guest::phase::gone;
            break;
        case core::closing::linger:
            host.linger();
            break;
    }
}

// ---- the connection

guest::guest(server_process& server, connection& link)
    : server_{&server}, link_{&link}, stream_{*server.world_, link, side::server} {
    link.own(side::server, this);
    time_out_in(server.engine_settings().io_timeout);
    if (stream_.socket_readable()) {
        enqueue();
    }
}

claim_record& guest::record() const {
    return server_->rules_->of(link_->id());
}

void guest::on_ready(connection& /*link*/) {
    const bool due = at != phase::session || (wants_read && stream_.socket_readable()) ||
                     (wants_write && stream_.socket_writable());
    if (due) {
        enqueue();
    }
}

void guest::enqueue() {
    if (!queued) {
        queued = true;
        server_->ready_.push_back(link_->id());
        server_->schedule_turn(server_->world_->random.between(sim_time{0}, sim_time{200'000}));
    }
}

void guest::time_out_in(nanoseconds limit) {
    server_process* const server = server_;
    const std::uint32_t id = link_->id();
    const phase of = at;
    const sim_time when = server->machine_->steady.when(server->clock() + limit);
    server->world_->events.at(when, [server, id, of] {
        const auto found = server->guests_.find(id);
        if (server->alive_ && found != server->guests_.end()) {
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
    server_->may_stop();
    if (!server_->alive_) {
        return;
    }
    const io_result got = stream_.read(input);
    switch (got.status) {
        case io_status::done: {
            server_->may_stop();
            take_acquire(std::span{input}.first(got.count),
                         server_->now().time_since_epoch());  // clock rule 1
            return;
        }
        case io_status::would_block:
            if (timed_out_) {
                close();
            }
            return;
        case io_status::unreadable:
            server_->rules_->cannot_read(record(), stream_.records()->alert_sent());
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
    if (!server_->alive_) {
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
            refuse(decoder_.error());
            return;
        case protocol::acquire_decoder::status::complete:
            break;
    }
    request_ = decoder_.take_request();
    received_at_ = received_at;
    const auto beyond = bytes.subspan(used);
    rest_.assign(beyond.begin(), beyond.end());
    if (!server_->access_.permits(record().identity, request_.name)) {
        deny(server_->access_);
        return;
    }
    record().permitted_by = server_->access_.generation;
    at = phase::moving;
    context& world = *server_->world_;
    if (world.random.chance(500'000)) {
        admit();
        return;
    }
    server_process* const server = server_;
    const std::uint32_t id = link_->id();
    world.events.in(world.random.spread(sim_time{1'000}, sim_time{1'000'000}), [server, id] {
        if (server->alive_) {
            server->moved_.push_back(id);
            server->schedule_turn(sim_time{0});
        }
    });
}

void guest::admit() {
    if (at != phase::moving) {
        return;
    }
    // While it was on its way the shard may have adopted newer rules, and sent its waiters away.
    if (record().permitted_by < server_->home_access_.generation &&
        !server_->home_access_.permits(record().identity, request_.name)) {
        deny(server_->home_access_);
        return;
    }
    at = phase::session;
    admitted_at = server_->world_->events.now();
    session = std::make_unique<claim_session>(*this);
    session->heard_at = received_at_;
    claim_record& who = record();
    who.lease = milliseconds{request_.lease_ms};
    server_->rules_->arrived(who, request_.name, *session);
    if (!rest_.empty()) {
        server_->rules_->received(who, rest_.size());
    }
    server_->engine_call([this] {
        const core::name_hash hash = core::name_hasher{hash_key}(request_.name);
        server_->engine_.admit(*session, request_, hash, core::time_point{received_at_}, rest_);
    });
}

// The judgement of a lease may have read meanwhile what made the socket ready. A wake-up that the
// event loop had collected by then comes late; one that it had not does not come at all.
void guest::serve_session() {
    if (session && wants_write && stream_.socket_writable()) {
        wants_write = false;
        server_->engine_call([this] { server_->engine_.writable(*session); });
    }
    if (server_->alive_ && session && wants_read &&
        (input_held || stream_.socket_readable() || server_->world_->random.chance(250'000))) {
        wants_read = false;
        input_held = false;
        server_->engine_call([this] { server_->engine_.readable(*session); });
    }
}

void guest::refuse(const protocol::malformed& why) {
    const auto frame = protocol::encode_error(why.code, why.reason);
    claim_record& who = record();
    server_->rules_->error_due(who, why.code);
    const io_result did = stream_.write(frame.bytes());
    if (did.status == io_status::done) {
        server_->rules_->wrote(who, frame.bytes().first(did.count), frame.bytes().size());
    }
    linger();
}

void guest::deny(const access_file& by) {
    constexpr auto code = protocol::error_code::not_authorized;
    server_->rules_->denied(record(), request_.name, by.generation);
    refuse({.code = code, .reason = std::string{protocol::canonical_reason(code)}});
}

void guest::linger() {
    at = phase::lingering;
    timed_out_ = false;
    stream_.linger();
    time_out_in(server_->engine_settings().io_timeout);
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

void guest::close() {
    stream_.close();
    at = phase::gone;
}

}  // namespace monolock::simulation
