#include "simulation/server_process.hpp"

#include <algorithm>

#include "simulation/guest.hpp"

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

constexpr actor server_actor{"server"};

// How late a timer may be, and a wake-up.
constexpr sim_time timer_latency_max = 300us;

}  // namespace

server_process::server_process(context& world, rules& checks, const server_machine& machine,
                               unsigned number, const access_file& access)
    : world_{&world},
      rules_{&checks},
      machine_{&machine},
      number_{number},
      settings_{.io_timeout = world.plan.io_timeout},
      engine_{*this, *this, *this, settings_},
      access_{access},
      home_access_{access} {
    checks.process_started(number, machine.wall_ms(world.events.now()));
    checks.access_adopted(access.generation);
    checks.sweep_returned();
}

server_process::~server_process() {
    if (alive_) {
        crash();
    }
}

// ---- ports

nanoseconds server_process::clock() const noexcept {
    return machine_->steady.at(world_->events.now());
}

core::time_point server_process::now() noexcept {
    may_stop();
    if (alive_) {
        last_reading_ = clock();
        last_reading_real_ = world_->events.now();
        if (claim_session* const who = std::exchange(heard_, nullptr)) {
            who->heard_at = last_reading_;
        }
        if (claim_session* const who = std::exchange(blocked_, nullptr)) {
            who->blocked_since(last_reading_);
        }
        may_stop();
    }
    return core::time_point{last_reading_};
}

core::fencing_token server_process::next() noexcept {
    const std::int64_t wall = machine_->wall_ms(world_->events.now());
    last_token_ = core::next_token(last_token_, static_cast<std::uint64_t>(wall));
    if (alive_) {
        rules_->token_taken(last_token_.value, wall);
    }
    return last_token_;
}

guest& server_process::guest_of(const core::session& who) const {
    return *guests_.at(static_cast<std::uint32_t>(who.id().value));
}

void server_process::note_frame(const core::fact& what) {
    const auto note = [this](const core::session& who, std::size_t bytes) {
        guest_of(who).session->frame_stated(bytes, last_reading_);
    };
    if (const auto* const wait = std::get_if<core::queued>(&what)) {
        note(*wait->who, protocol::waiting_frame.size());
    } else if (const auto* const grant = std::get_if<core::granted>(&what)) {
        note(*grant->who, protocol::acquired_bytes);
    } else if (const auto* const ack = std::get_if<core::acknowledged>(&what)) {
        note(*ack->who, ack->state == core::session_state::owning ? protocol::acquired_bytes
                                                                  : protocol::waiting_frame.size());
    }
}

void server_process::on_fact(const core::fact& what) {
    if (!alive_) {
        return;
    }
    rules_->fact_stated(what);
    note_frame(what);
    const auto* const end = std::get_if<core::ended>(&what);
    if (end == nullptr) {
        return;
    }
    const guest& host = guest_of(*end->who);
    const claim_session& who = *host.session;
    const claim_record& record = host.record();
    if (record.write_short && !who.dropped) {
        rules_->ended_by_limit(record, end->why, who.heard_at + record.lease,
                               who.blocked_at() + settings_.io_timeout);
    }
    if (end->why == core::end_reason::expired) {
        rules_->expired(
            record, {.reading = who.dropped ? last_reading_ : who.read_before,
                     .last_arrival = machine_->steady.at(host.stream().last_read_arrived()),
                     .last_receive = who.heard_at,
                     .unread_before_reading = host.stream().oldest_unread() < who.read_before_real,
                     .word_read = host.stream().records() != nullptr &&
                                  host.stream().records()->peer_ended(),
                     .reads = !who.dropped && !record.write_short && !record.write_failed,
                     .was_stopped = stopped_since(who.heard_at + record.lease)});
    } else if (end->why == core::end_reason::io_timeout) {
        rules_->io_timed_out(record, last_reading_ - who.blocked_at(), settings_.io_timeout,
                             stopped_since(who.blocked_at() + settings_.io_timeout));
    }
}

void server_process::on_error_due(const core::connected_session& who, protocol::error_code code,
                                  std::string_view /*reason*/) {
    if (alive_) {
        world_->log.note(server_actor, "connection {} gets ERROR {}", who.id().value, code);
        claim_record& record = rules_->of(static_cast<std::uint32_t>(who.id().value));
        rules_->error_due(record, code);
        if (code == protocol::error_code::not_authorized) {
            rules_->denied(record, std::string{who.lock_name()}, home_access_.generation);
        }
    }
}

// ---- stops

void server_process::may_stop() {
    if (alive_ && world_->random.chance(world_->plan.server_stops)) {
        ++world_->counts->server_stops;
        stop_here(world_->random.spread(sim_time{1us}, world_->plan.stop_max));
    }
}

// In the midst of a call: the world goes on inside of it.
void server_process::stop_here(sim_time pause) {
    stopped_until_ = std::max(stopped_until_, world_->events.now() + pause);
    world_->log.note(server_actor, "stopped in a turn for {} us", pause.count() / 1000);
    while (alive_ && world_->events.now() < stopped_until_) {
        static_cast<void>(world_->events.run_next(stopped_until_));
    }
    last_stop_end_ = world_->events.now();
    world_->log.note(server_actor, "goes on");
}

// A stopped process is not stopped further: it would never go on.
void server_process::stop_for(sim_time pause) {
    if (world_->events.now() < stopped_until_) {
        return;
    }
    stopped_until_ = world_->events.now() + pause;
    last_stop_end_ = std::max(last_stop_end_, stopped_until_);
    world_->log.note(server_actor, "stopped for {} us", pause.count() / 1000);
}

bool server_process::stopped_since(nanoseconds reading) const noexcept {
    return last_stop_end_ >= sim_time{0} && machine_->steady.at(last_stop_end_) >= reading;
}

// ---- turns of the loop

void server_process::schedule_turn(sim_time delay) {
    if (alive_ && !turn_scheduled_ && !busy_) {
        turn_scheduled_ = true;
        world_->events.in(delay, [this] {
            turn_scheduled_ = false;
            turn();
        });
    }
}

void server_process::turn() {
    if (!alive_ || busy_) {
        return;
    }
    if (world_->events.now() < stopped_until_) {
        schedule_turn(stopped_until_ - world_->events.now());
        return;
    }
    busy_ = true;
    may_stop();
    if (alive_) {
        accept_waiting();
    }
    if (alive_) {
        admit_moved();
    }
    if (alive_) {
        adopt_access();
    }
    // A loop gives no order to a timer and the sockets.
    const bool timer_first = world_->random.chance(500'000);
    if (timer_first) {
        judge_due();
    }
    serve_ready();
    obey_operator();
    if (!timer_first) {
        judge_due();
    }
    shut_down_some();
    busy_ = false;
    if (!alive_) {
        bury();
        return;
    }
    std::erase_if(guests_, [](const auto& entry) {
        return entry.second->at == guest::phase::gone && !entry.second->queued;
    });
    std::erase_if(links_, [](const connection* link) { return !link->is_open(side::server); });
    look_for_unread();
    arm_timer();
    if (!ready_.empty() || judge_due_ || !moved_.empty() || !waiting_for_accept_.empty() ||
        operator_wants_ > 0 || !to_adopt_.empty() || !to_adopt_at_home_.empty() ||
        (terminating_ && engine_.table().session_count() > 0)) {
        schedule_turn(sim_time{1us});
    }
}

void server_process::connection_arrives(connection& link) {
    links_.push_back(&link);
    waiting_for_accept_.push_back(&link);
    schedule_turn(world_->random.between(sim_time{0}, sim_time{200us}));
}

void server_process::accept_waiting() {
    while (!waiting_for_accept_.empty() && !terminating_) {
        connection& link = *waiting_for_accept_.front();
        waiting_for_accept_.pop_front();
        guests_.emplace(link.id(), std::make_unique<guest>(*this, link));
    }
}

void server_process::admit_moved() {
    while (alive_ && !moved_.empty()) {
        const std::uint32_t id = moved_.front();
        moved_.pop_front();
        const auto found = guests_.find(id);
        if (found != guests_.end()) {
            found->second->admit();
        }
    }
}

// What is ready now has its turn, in any order; what becomes ready meanwhile waits for the next.
void server_process::serve_ready() {
    std::vector<std::uint32_t> now_ready;
    now_ready.swap(ready_);
    for (std::size_t left = now_ready.size(); alive_ && left > 0; --left) {
        std::swap(now_ready[world_->random.below(left)], now_ready[left - 1]);
        const auto found = guests_.find(now_ready[left - 1]);
        if (found != guests_.end()) {
            found->second->queued = false;
            found->second->serve();
        }
    }
}

void server_process::judge_due() {
    if (alive_ && judge_due_) {
        const auto budget = static_cast<std::size_t>(world_->random.between(1, 4));
        engine_call([&] { judge_due_ = engine_.judge(budget); });
    }
}

void server_process::look_for_unread() const {
    for (const auto& [id, who] : guests_) {
        const bool reads = who->session && !who->session->dropped;
        const sim_time arrived = reads ? who->stream().oldest_unread() : never;
        if (arrived != never) {
            const sim_time since =
                std::max({arrived, last_stop_end_, who->admitted_at, who->last_receive});
            rules_->left_unread(who->record(), world_->events.now() - since);
        }
    }
}

void server_process::arm_timer() {
    const auto deadline = engine_.next_deadline();
    if (!deadline) {
        return;
    }
    const sim_time when = machine_->steady.when(deadline->time_since_epoch());
    if (when < timer_at_) {
        timer_at_ = when;
        world_->events.at(std::max(when, world_->events.now()) +
                              world_->random.between(sim_time{0}, timer_latency_max),
                          [this, when] {
                              if (timer_at_ == when) {
                                  timer_at_ = never;
                                  judge_due_ = true;
                                  schedule_turn(sim_time{0});
                              }
                          });
    }
}

// ---- the operator, and the end

void server_process::close_some_session() {
    ++operator_wants_;
    schedule_turn(sim_time{0});
}

void server_process::obey_operator() {
    for (; alive_ && operator_wants_ > 0; --operator_wants_) {
        std::vector<guest*> with_session;
        for (const auto& [id, who] : guests_) {
            if (who->session) {
                with_session.push_back(who.get());
            }
        }
        if (!with_session.empty()) {
            claim_session& who = *with_session[world_->random.below(with_session.size())]->session;
            engine_call([&] {
                engine_.close_with_error(who, core::end_reason::force,
                                         protocol::error_code::closed_by_administrator);
            });
        }
    }
}

// ---- access rules

void server_process::reload(const access_file& access) {
    world_->log.note(server_actor, "told of access rules {}", access.generation);
    to_adopt_.push_back(access);
    to_adopt_at_home_.push_back(access);
    schedule_turn(world_->random.between(sim_time{0}, sim_time{200us}));
}

// A posted message reaches each of the two shards, now or in a later turn.
void server_process::adopt_access() {
    while (!to_adopt_.empty() && world_->random.chance(700'000)) {
        access_ = to_adopt_.front();
        to_adopt_.pop_front();
    }
    while (alive_ && !to_adopt_at_home_.empty() && world_->random.chance(700'000)) {
        const access_file next = to_adopt_at_home_.front();
        to_adopt_at_home_.pop_front();
        adopt_and_sweep(next);
    }
}

// As in src/server/shard.cpp: both in one turn.
void server_process::adopt_and_sweep(const access_file& access) {
    home_access_ = access;
    rules_->access_adopted(access.generation);
    std::size_t revoked = 0;
    engine_call([&] {
        revoked = engine_.revoke_waiters([this](const core::connected_session& who) {
            return home_access_.permits(guest_of(who).record().identity, who.lock_name());
        });
    });
    if (alive_) {
        rules_->sweep_returned();
    }
    world_->counts->sweeps_that_revoked += revoked > 0 ? 1U : 0U;
}

void server_process::terminate() {
    if (terminating_) {
        return;
    }
    world_->log.note(server_actor, "told to terminate");
    terminating_ = true;
    for (connection* const link : waiting_for_accept_) {
        link->abort(side::server);
    }
    waiting_for_accept_.clear();
    schedule_turn(sim_time{0});
}

void server_process::shut_down_some() {
    constexpr auto code = protocol::error_code::server_shutting_down;
    if (!alive_ || !terminating_) {
        return;
    }
    if (!withheld_) {
        withheld_ = true;
        engine_.withhold_grants();
        rules_->grants_withheld();
    }
    for (const auto& [id, who] : guests_) {
        if (who->at == guest::phase::handshake || who->at == guest::phase::moving) {
            who->refuse({.code = code, .reason = "server shutting down"});
        }
    }
    const auto budget = static_cast<std::size_t>(world_->random.between(1, 3));
    engine_call([&] { static_cast<void>(engine_.close_all(budget, code)); });
}

bool server_process::idle() const noexcept {
    return !busy_ && engine_.table().session_count() == 0 && engine_.table().lock_count() == 0 &&
           std::all_of(guests_.begin(), guests_.end(),
                       [](const auto& entry) { return entry.second->at == guest::phase::gone; });
}

void server_process::crash() {
    world_->log.note(server_actor, "process {} is no more", number_);
    alive_ = false;
    for (connection* const link : links_) {
        rules_->of(link->id()).excused = true;
        link->close(side::server);
    }
    rules_->process_ended();
    if (!busy_) {
        bury();
    }
}

void server_process::power_cut(sim_time until) {
    world_->log.note(server_actor, "process {} loses its machine", number_);
    alive_ = false;
    for (connection* const link : links_) {
        rules_->of(link->id()).excused = true;
        link->vanish(side::server, until);
    }
    rules_->process_ended();
    if (!busy_) {
        bury();
    }
}

// The objects of a dead process have to be taken apart somehow; its ports are mute by now.
void server_process::bury() {
    engine_.withhold_grants();
    while (engine_.close_all(64, protocol::error_code::server_shutting_down)) {
    }
    guests_.clear();
}

}  // namespace monolock::simulation
