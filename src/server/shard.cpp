#include "server/shard.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace monolock::server {

namespace {

// How many overdue sessions are looked at before connections have a turn: after a pause that may be
// all there are, and a heartbeat that waits meanwhile is nobody's fault.
constexpr std::size_t judge_batch = 64;

// How many are closed in a shutdown.
constexpr std::size_t close_batch = 256;

// How many locks are tried again in one turn.
constexpr std::size_t retry_batch_size = 64;

constexpr auto shutting_down = protocol::error_code::server_shutting_down;
constexpr auto not_authorized = protocol::error_code::not_authorized;

audit_subject subject_of(const core::session& session) {
    const auto& who = static_cast<const socket_session&>(session);
    return {.lock = who.lock_name(), .identity = who.identity(), .peer = who.peer()};
}

}  // namespace

shard::shard(shard_surroundings& surroundings, std::size_t number)
    : around_{&surroundings},
      number_{number},
      history_{surroundings.remembers_ownership ? std::make_unique<admin::ownership_history>()
                                                : nullptr},
      engine_{surroundings.tokens,
              *this,
              *this,
              {.io_timeout = surroundings.io_timeout, .mandate = surroundings.mandate}},
      access_{surroundings.access_at_start},
      tls_{surroundings.tls_at_start},
      tls_handshakes_{loop_, surroundings.io_timeout,
                      [](tls_handshake& late) {
                          const boost::intrusive_ptr<tls_handshake> alive{&late};
                          late.give_up("it took too long");
                      }},
      handshakes_{loop_, surroundings.io_timeout,
                  [](handshake& late) {
                      const boost::intrusive_ptr<handshake> alive{&late};
                      late.close();
                  }},
      lingering_{loop_, surroundings.io_timeout,
                 [](lingering_close& late) {
                     const boost::intrusive_ptr<lingering_close> alive{&late};
                     late.close();
                 }},
      deadline_{loop_, [this] { judge(); }},
      last_look_{loop_, [this] { report_if_alone(); }} {}

shard::~shard() {
    MONOLOCK_ASSERT(!thread_.joinable());
}

void shard::add_listening(posix::descriptor listening) {
    acceptors_.emplace_back(
        new acceptor{loop_, std::move(listening), around_->accepting, *around_->log,
                     [this](loose_connection connection, const peer_address& peer) {
                         on_connection(std::move(connection), peer);
                     }});
}

void shard::start() {
    std::promise<void> ended;
    loop_ended_ = ended.get_future();
    thread_ = std::thread{[this, ended = std::move(ended)]() mutable {
        loop_.run();
        ended.set_value();
    }};
    ::pthread_setname_np(thread_.native_handle(), ("shard-" + std::to_string(number_)).c_str());
}

void shard::begin_serving() {
    loop_.post([this] {
        engine_.grant_again();
        stage_ = stage::serving;
    });
}

void shard::open(std::vector<posix::descriptor> listening) {
    loop_.post([this, listening = std::move(listening)]() mutable {
        acceptors_.clear();
        for (posix::descriptor& each : listening) {
            add_listening(std::move(each));
        }
        for (const auto& each : acceptors_) {
            each->start();
        }
    });
}

void shard::retry_grants() {
    loop_.post([this] { retry_batch(engine_.idle_count()); });
}

// As many as were idle when it began: one that is refused again is the last in line, and is not
// asked for twice.
void shard::retry_batch(std::size_t left) {
    const std::size_t now = std::min(left, retry_batch_size);
    engine_.retry_grants(now);
    arm_deadline();
    if (left > now) {
        loop_.post([this, left, now] { retry_batch(left - now); });
    }
}

void shard::ask(callback question) {
    loop_.post(std::move(question));
}

void shard::end_by_operator(core::connected_session& who) {
    const std::string from = static_cast<const socket_session&>(who).peer().to_string();
    const bool owned = who.state() == core::session_state::owning;
    around_->log->write(
        telemetry::log_level::info,
        owned ? "an operator ends the owner's session" : "an operator ends a waiter's session",
        {{.key = "lock", .value = who.lock_name()},
         {.key = "remote_addr", .value = from},
         {.key = "token", .value = who.token().value}});
    if (around_->audit != nullptr && owned) {
        around_->audit->force_release(subject_of(who), who.token());
    } else if (around_->audit != nullptr) {
        around_->audit->kick_waiter(subject_of(who));
    }
    engine_.close_with_error(who, core::end_reason::force,
                             protocol::error_code::closed_by_administrator);
    arm_deadline();
}

void shard::hand_over(claim_arrival claim) {
    loop_.post([this, claim = std::move(claim)]() mutable { arrive(std::move(claim)); });
}

bool shard::stop_and_join_within(core::nanoseconds patience) {
    loop_.stop();
    if (thread_.joinable() && loop_ended_.wait_for(patience) != std::future_status::ready) {
        return false;
    }
    stop_and_join();
    return true;
}

void shard::stop_and_join() {
    loop_.stop();
    if (thread_.joinable()) {
        thread_.join();
    }
    // The loop does not turn any more, so this thread may do its work.
    engine_.withhold_grants();
    while (engine_.close_all(close_batch, shutting_down)) {
    }
}

void shard::on_connection(loose_connection connection, const peer_address& peer) {
    counters_.connection_accepted();
    if (!connection.slot) {
        refuse_at_once(connection.descriptor);
        return;
    }
    std::optional<connection_socket> socket = watch(std::move(connection));
    if (!socket) {
        return;
    }
    if (tls_.context) {
        begin_tls(*std::move(socket), peer);
    } else {
        begin_claim(*std::move(socket), peer, {});
    }
}

// Nobody can be told anything before TLS is established. So while the server shuts down, who has
// begun goes on, to be refused by an ERROR, and who has said nothing is closed.
void shard::begin_tls(connection_socket&& socket, const peer_address& peer) {
    const boost::intrusive_ptr<tls_handshake> made{
        new tls_handshake{std::move(socket), peer, steps_, *this}};
    if (stage_ != stage::serving && !made->has_begun()) {
        return;
    }
    tls_handshakes_.add(*made);
    made->start();
}

void shard::begin_claim(connection_socket&& socket, const peer_address& peer,
                        std::string&& identity) {
    const boost::intrusive_ptr<handshake> made{
        new handshake{std::move(socket), peer, std::move(identity), *this}};
    if (stage_ != stage::serving) {
        made->refuse(shutting_down);
        return;
    }
    handshakes_.add(*made);
    made->start();
}

void shard::on_secured(connection_socket&& socket, const peer_address& peer,
                       std::string&& identity) {
    begin_claim(std::move(socket), peer, std::move(identity));
}

// However it came to nothing: probes and mistakes of outsiders, so nothing for the operator's eyes.
void shard::on_failed(connection_socket&& socket, const peer_address& peer,
                      const std::string& why) {
    around_->tls_handshake_errors.fetch_add(1, std::memory_order_relaxed);
    if (socket.is_open()) {
        on_linger(std::move(socket));
    }
    if (around_->log->writes(telemetry::log_level::debug)) {
        const std::string from = peer.to_string();
        around_->log->write(
            telemetry::log_level::debug, "TLS handshake failed",
            {{.key = "remote_addr", .value = from},
             {.key = "reason",
              .value = why.empty() ? std::string_view{"the peer went away"} : why}});
    }
}

void shard::on_foreign(const peer_address& peer, foreign_protocol what) {
    const std::string from = peer.to_string();
    around_->log->write_seldom(around_->hints[static_cast<std::size_t>(what)],
                               telemetry::log_level::info, hint(what),
                               {{.key = "remote_addr", .value = from}});
}

void shard::adopt_tls(tls_setting newest) {
    loop_.post([this, newest = std::move(newest)] { tls_ = newest; });
}

// Nothing, and the connection is closed, if the system has no room for one more. Its peer may come
// again; the sessions that are there go on.
std::optional<connection_socket> shard::watch(loose_connection connection) {
    connection_socket socket{loop_.connections(), std::move(connection)};
    if (socket.is_open()) {
        return socket;
    }
    acceptor::surroundings& accepting = around_->accepting;
    around_->log->write_seldom(accepting.trouble, telemetry::log_level::warn,
                               "a connection was closed: the system refuses to watch it",
                               {{.key = "accept_errors", .value = ++accepting.errors}});
    return std::nullopt;
}

// Without lingering: what the peer sent already is read, so that the close does not destroy the
// ERROR; what it sends later may.
void shard::refuse_at_once(const posix::descriptor& connection) {
    if (tls_.context) {
        return;  // no ERROR can be said before a handshake
    }
    std::array<std::byte, core::session_engine::receive_bytes_max>
        input;  // NOLINT: only written to
    counters_.error_due(shutting_down);
    static_cast<void>(send_to(
        connection.get(),
        protocol::encode_error(shutting_down, protocol::canonical_reason(shutting_down)).bytes()));
    static_cast<void>(receive_from(connection.get(), input));
}

// What is read when the mandate is over is not acted upon, nor what was on its way between two
// shards at that moment: another server's rules may be in force.
bool shard::may_act() const noexcept {
    return around_->mandate == nullptr || around_->mandate->in_force();
}

void shard::on_claim(connection_socket&& socket, claim_arrival&& claim) {
    if (!may_act()) {
        refuse(std::move(socket), shutting_down);
        return;
    }
    if (!trusts(socket)) {
        distrust(std::move(socket), claim.peer);
        return;
    }
    if (!permits(claim)) {
        deny(std::move(socket), claim);
        return;
    }
    claim.access_generation = access_.generation;
    claim.hash = around_->hasher(claim.request.name);
    const std::size_t home = core::shard_of(claim.hash, around_->shards.size());
    if (home == number_) {
        admit(std::move(socket), std::move(claim));
        return;
    }
    claim.connection = socket.release();
    around_->shards[home]->hand_over(std::move(claim));
}

// While the claim was on its way this shard may have adopted newer files, and sent its waiters
// away: whoever comes later is held to them too. Older rules than those that permitted it say
// nothing.
void shard::arrive(claim_arrival&& claim) {
    std::optional<connection_socket> socket = watch(std::move(claim.connection));
    if (!socket) {
        return;
    }
    if (!may_act()) {
        refuse(*std::move(socket), shutting_down);
        return;
    }
    if (!trusts(*socket)) {
        distrust(*std::move(socket), claim.peer);
        return;
    }
    if (claim.access_generation < access_.generation && !permits(claim)) {
        deny(*std::move(socket), claim);
        return;
    }
    admit(*std::move(socket), std::move(claim));
}

// Whether the client's certificate is still good. Asked on the shard that read the ACQUIRE and on
// the home of its name: each of them may be the first to have the newest files.
bool shard::trusts(connection_socket& socket) const {
    return socket.stream() == nullptr || socket.stream()->is_accepted_by(tls_);
}

void shard::distrust(connection_socket&& socket, const peer_address& peer) {
    on_refused(std::move(socket), peer,
               {.code = not_authorized, .reason = "client certificate is no longer trusted"}, {});
}

// Nobody is admitted by a shard that does not serve: a claim may come from one which serves again
// already.
void shard::admit(connection_socket&& socket, claim_arrival&& claim) {
    if (stage_ != stage::serving) {
        refuse(std::move(socket), shutting_down);
        return;
    }
    const core::session_id id{around_->last_session_id.fetch_add(1, std::memory_order_relaxed) + 1};
    const boost::intrusive_ptr<socket_session> who{
        new socket_session{id, std::move(socket), claim.peer, std::move(claim.identity), *this}};
    who->hold_for_engine();
    engine_.admit(*who, claim.request, claim.hash, claim.received_at, claim.rest);
    arm_deadline();
}

bool shard::permits(const claim_arrival& claim) const {
    return access_.permits(claim.identity, claim.request.name);
}

void shard::deny(connection_socket&& socket, const claim_arrival& claim) {
    ++around_->acl_denials;
    refuse(std::move(socket), not_authorized);
    if (around_->audit != nullptr) {
        around_->audit->denied(
            {.lock = claim.request.name, .identity = claim.identity, .peer = claim.peer});
    }
    log_denied(claim);
}

void shard::adopt_rules(access_policy access) {
    loop_.post([this, access = std::move(access)]() mutable {
        MONOLOCK_ASSERT(access.generation > access_.generation);
        access_ = std::move(access);
        send_waiters_away();
    });
}

void shard::send_waiters_away() {
    const std::size_t sent_away =
        engine_.revoke_waiters([this](const core::connected_session& who) {
            return access_.permits(static_cast<const socket_session&>(who).identity(),
                                   who.lock_name());
        });
    if (sent_away > 0) {
        around_->log->write(telemetry::log_level::info,
                            "waiters that the new access rules do not permit were sent away",
                            {{.key = "waiters", .value = std::uint64_t{sent_away}}});
    }
}

void shard::on_refused(connection_socket&& socket, const peer_address& peer,
                       const protocol::malformed& refusal, std::span<const std::byte> seen) {
    if (!may_act()) {
        refuse(std::move(socket), shutting_down);
        return;
    }
    refuse(std::move(socket), refusal);
    log_refused(peer, refusal, seen);
}

void shard::refuse(connection_socket&& socket, protocol::error_code code) {
    refuse(std::move(socket), protocol::refusal(code));
}

void shard::refuse(connection_socket&& socket, const protocol::malformed& why) {
    counters_.error_due(why.code);
    static_cast<void>(socket.send(protocol::encode_error(why.code, why.reason).bytes()));
    on_linger(std::move(socket));
}

void shard::on_readable(socket_session& who) {
    engine_.readable(who);
    arm_deadline();
}

void shard::on_writable(socket_session& who) {
    engine_.writable(who);
    arm_deadline();
}

void shard::on_linger(connection_socket&& socket) {
    const boost::intrusive_ptr<lingering_close> last{new lingering_close{std::move(socket)}};
    if (!last->finish_at_once()) {
        lingering_.add(*last);
        last->wait();
    }
}

core::time_point shard::now() noexcept {
    return std::chrono::steady_clock::now();
}

// Left alone while it is armed for a time that is not too late: heartbeats only ever move deadlines
// away, so a heartbeat costs no timer.
void shard::arm_deadline() {
    if (judging_) {
        return;  // what is posted comes back here
    }
    const auto next = engine_.next_deadline();
    if (next && !(deadline_.is_armed() && deadline_.when() <= *next)) {
        deadline_.arm(*next);
    }
}

void shard::judge() {
    judging_ = engine_.judge(judge_batch);
    if (judging_) {
        loop_.post([this] { judge(); });
        return;
    }
    arm_deadline();
}

void shard::begin_drain(callback done) {
    loop_.post([this, done = std::move(done)] {
        stage_ = stage::refusing;
        engine_.withhold_grants();
        for (const auto& each : acceptors_) {
            each->stop();
        }
        tls_handshakes_.for_each([](tls_handshake& each) {
            if (!each.has_begun()) {
                const boost::intrusive_ptr<tls_handshake> alive{&each};
                each.give_up("the server is shutting down");
            }
        });
        while (!handshakes_.empty()) {
            const boost::intrusive_ptr<handshake> next{&handshakes_.front()};
            next->refuse(shutting_down);
        }
        done();
    });
}

// No shard sends claims here any more: each has acknowledged that it is refusing, and what it
// posted before was queued before this.
void shard::finish_drain(callback done) {
    loop_.post([this, done = std::move(done)]() mutable {
        stage_ = stage::draining;
        on_drained_ = std::move(done);
        close_sessions();
    });
}

void shard::close_sessions() {
    if (engine_.close_all(close_batch, shutting_down)) {
        loop_.post([this] { close_sessions(); });
        return;
    }
    std::exchange(on_drained_, {})();
}

void shard::await_last_connection(callback done) {
    loop_.post([this, done = std::move(done)]() mutable {
        on_alone_ = std::move(done);
        report_if_alone();
    });
}

void shard::report_if_alone() {
    if (lingering_.empty() && tls_handshakes_.empty()) {
        std::exchange(on_alone_, {})();
        return;
    }
    // Connections close one by one, each with its own wake-up; looking once in a while is cheaper
    // to get right than a word from each of them.
    last_look_.arm(now() + std::chrono::milliseconds{5});
}

void shard::on_fact(const core::fact& what) {
    counters_.take(what, engine_.table().session_count(), *this);
    if (around_->tracks_leases) {
        note_lease(what);
    }
    if (history_) {
        history_->take(what);
    }
    if (around_->audit != nullptr) {
        audit(what);
    }
    if (around_->log->writes(telemetry::log_level::debug)) {
        log_fact(what);
    }
}

void shard::note_lease(const core::fact& what) {
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        leases_.add(grant->who->lease());
        if (grant->who->lease() > around_->lease_covered_max) {
            note_uncovered(*grant);
        }
    } else if (const auto* const end = std::get_if<core::ended>(&what);
               end != nullptr && end->was == core::session_state::owning) {
        leases_.remove(end->who->lease());
    }
}

void shard::note_uncovered(const core::granted& grant) {
    const std::uint64_t so_far = ++around_->leases_uncovered;
    around_->log->write_seldom(
        around_->uncovered, telemetry::log_level::warn,
        "a lease is longer than a failover waits: two may believe that they own the lock",
        {{.key = "lock", .value = grant.who->lock_name()},
         {.key = "lease_ms", .value = static_cast<std::uint64_t>(grant.who->lease().count())},
         {.key = "leases_uncovered", .value = so_far}});
}

// Grants and ends of ownership; heartbeats and queueing are nobody's business later.
void shard::audit(const core::fact& what) {
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        around_->audit->granted(subject_of(*grant->who), grant->token, grant->waited);
    } else if (const auto* const end = std::get_if<core::ended>(&what);
               end != nullptr && end->was == core::session_state::owning) {
        around_->audit->released(subject_of(*end->who), end->who->token(), end->lasted, end->why);
    }
}

void shard::log_fact(const core::fact& what) {
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        const auto& who = static_cast<const socket_session&>(*grant->who);
        const std::string from = who.peer().to_string();
        around_->log->write(telemetry::log_level::debug, "granted",
                            {{.key = "lock", .value = grant->who->lock_name()},
                             {.key = "identity", .value = who.identity()},
                             {.key = "remote_addr", .value = from},
                             {.key = "token", .value = grant->token.value}});
    } else if (const auto* const end = std::get_if<core::ended>(&what)) {
        log_ended(*end);
    }
}

void shard::log_refused(const peer_address& peer, const protocol::malformed& refusal,
                        std::span<const std::byte> seen) {
    if (const auto foreign = guess_foreign_to_plain(seen)) {
        on_foreign(peer, *foreign);
    }
    if (around_->log->writes(telemetry::log_level::debug)) {
        const std::string from = peer.to_string();
        around_->log->write(
            telemetry::log_level::debug, "claim refused",
            {{.key = "remote_addr", .value = from}, {.key = "reason", .value = refusal.reason}});
    }
}

void shard::log_denied(const claim_arrival& claim) {
    if (!around_->log->writes(telemetry::log_level::debug)) {
        return;
    }
    const std::string from = claim.peer.to_string();
    around_->log->write(telemetry::log_level::debug, "claim denied",
                        {{.key = "lock", .value = claim.request.name},
                         {.key = "identity", .value = claim.identity},
                         {.key = "remote_addr", .value = from}});
}

void shard::log_ended(const core::ended& what) {
    const auto& who = static_cast<const socket_session&>(*what.who);
    const std::string from = who.peer().to_string();
    around_->log->write(telemetry::log_level::debug,
                        what.was == core::session_state::owning ? "released" : "left the queue",
                        {{.key = "lock", .value = who.lock_name()},
                         {.key = "identity", .value = who.identity()},
                         {.key = "remote_addr", .value = from},
                         {.key = "reason", .value = core::to_string(what.why)}});
}

void shard::on_error_due(const core::connected_session& who, protocol::error_code code,
                         std::string_view reason) {
    counters_.error_due(code);
    if (code == not_authorized) {  // a waiter, by new rules
        ++around_->acl_denials;
        if (around_->audit != nullptr) {
            around_->audit->denied(subject_of(who));
        }
    }
    if (!around_->log->writes(telemetry::log_level::debug)) {
        return;
    }
    const auto& to = static_cast<const socket_session&>(who);
    const std::string from = to.peer().to_string();
    around_->log->write(telemetry::log_level::debug, "error sent",
                        {{.key = "lock", .value = to.lock_name()},
                         {.key = "identity", .value = to.identity()},
                         {.key = "remote_addr", .value = from},
                         {.key = "code", .value = std::uint64_t{static_cast<std::uint8_t>(code)}},
                         {.key = "reason", .value = reason}});
}

}  // namespace monolock::server
