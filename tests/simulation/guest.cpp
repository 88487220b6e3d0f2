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

core::receive_result claim_session::receive(std::span<std::byte> into) noexcept {
    server_process& server = host_->server();
    server.may_stop();
    if (!server.alive_) {
        return {};
    }
    const io_result got = host_->link().read(side::server, into);
    core::receive_result result;
    switch (got.status) {
        case io_status::done:
            result = {.status = core::receive_status::bytes, .count = got.count};
            host_->server().heard_ = this;
            server.rules_->received(host_->record(), got.count);
            break;
        case io_status::would_block:
            break;
        case io_status::eof:
        case io_status::reset:
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
    claim_record& record = host_->record();
    const io_result did = host_->link().write(side::server, bytes);
    core::send_result result{.count = did.count};
    switch (did.status) {
        case io_status::done:
        case io_status::would_block:
            if (did.count < bytes.size() && !record.write_short) {
                server.blocked_ = this;
            }
            if (bytes.size() - did.count <= protocol::acquired_bytes && pushed_at) {
                blocked_at = *std::exchange(pushed_at, std::nullopt);  // only the push is left
            }
            server.rules_->wrote(record, bytes.first(did.count), bytes.size());
            break;
        case io_status::eof:
        case io_status::reset:
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

void claim_session::await_readable() {
    host_->wants_read = true;
    if (host_->link().readable(side::server)) {
        host_->enqueue();
    }
}

void claim_session::await_writable() {
    host_->wants_write = true;
    if (host_->link().writable(side::server)) {
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
            host.close();
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

guest::guest(server_process& server, connection& link) : server_{&server}, link_{&link} {
    link.own(side::server, this);
    time_out_in(server.engine_settings().io_timeout);
    if (link.readable(side::server)) {
        enqueue();
    }
}

claim_record& guest::record() const {
    return server_->rules_->of(link_->id());
}

void guest::on_ready(connection& /*link*/) {
    const bool due = at != phase::session || (wants_read && link_->readable(side::server)) ||
                     (wants_write && link_->writable(side::server));
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
    const io_result got = link_->read(side::server, input);
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
        case io_status::eof:
        case io_status::reset:
        case io_status::timed_out:
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
            } else if (link_->readable(side::server)) {
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

// Also called late, when the engine has read in the meantime what made the socket ready: an event
// loop does that too.
void guest::serve_session() {
    if (session && wants_write && link_->writable(side::server)) {
        wants_write = false;
        server_->engine_call([this] { server_->engine_.writable(*session); });
    }
    if (server_->alive_ && session && wants_read) {
        wants_read = false;
        server_->engine_call([this] { server_->engine_.readable(*session); });
    }
}

void guest::refuse(const protocol::malformed& why) {
    const auto frame = protocol::encode_error(why.code, why.reason);
    claim_record& who = record();
    server_->rules_->error_due(who);
    const io_result did = link_->write(side::server, frame.bytes());
    if (did.status == io_status::done) {
        server_->rules_->wrote(who, frame.bytes().first(did.count), frame.bytes().size());
    }
    linger();
}

void guest::linger() {
    at = phase::lingering;
    timed_out_ = false;
    link_->shut_down_sending(side::server);
    time_out_in(server_->engine_settings().io_timeout);
    enqueue();
}

void guest::discard() {
    std::array<std::byte, core::session_engine::receive_bytes_max> waste{};
    for (;;) {
        const io_result got = link_->read(side::server, waste);
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

void guest::close() {
    link_->close(side::server);
    at = phase::gone;
}

}  // namespace monolock::simulation
