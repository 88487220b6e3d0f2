#include "simulation/server_shard.hpp"

#include <algorithm>
#include <array>

#include "simulation/guest.hpp"

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

// How late a timer may be, and a wake-up.
constexpr sim_time timer_latency_max = 300us;
constexpr sim_time wake_latency_max = 200us;

// As src/server/acceptor.cpp has it.
constexpr nanoseconds accept_retry_after = 100ms;

}  // namespace

server_shard::claim_moves::claim_moves(std::unique_ptr<guest> claim) noexcept
    : who{std::move(claim)} {}
server_shard::claim_moves::claim_moves(claim_moves&&) noexcept = default;
server_shard::claim_moves& server_shard::claim_moves::operator=(claim_moves&&) noexcept = default;
server_shard::claim_moves::~claim_moves() = default;

server_shard::server_shard(server_process& process, int number, access_file access)
    : world_{process.world_},
      rules_{process.rules_},
      process_{&process},
      number_{number},
      self_{"shard", number},
      engine_{*this, *this, *this, {.io_timeout = process.settings_.io_timeout, .mandate = this}},
      access_{std::move(access)} {}

server_shard::~server_shard() = default;

// ---- ports

core::time_point server_shard::now() noexcept {
    may_stop();
    if (alive()) {
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

// The wall clock is read first; other shards may take tokens before this one does.
std::optional<core::fencing_token> server_shard::next(std::chrono::milliseconds lease) noexcept {
    if (const bool refused = !may_act() || process_->refuses_token(lease); alive() && refused) {
        ++world_->counts->grants_refused;
        return std::nullopt;
    }
    const std::int64_t wall = process_->machine_->wall_ms(world_->events.now());
    may_stop();
    return process_->take_token(number_, wall);
}

bool server_shard::may_act() {
    may_stop();
    const bool so = process_->in_mandate();
    may_stop();
    return so;
}

bool server_shard::in_force() noexcept {
    const bool so = may_act();
    if (alive()) {
        rules_->mandate_seen(number_, so);
        engine_may_act_ = so;
    }
    return so;
}

guest& server_shard::guest_of(const core::session& who) const {
    return *guests_.at(static_cast<std::uint32_t>(who.id().value));
}

void server_shard::note_frame(const core::fact& what) {
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

void server_shard::on_fact(const core::fact& what) {
    if (!alive()) {
        return;
    }
    rules_->fact_stated(what);
    note_frame(what);
    if (const auto* const end = std::get_if<core::ended>(&what)) {
        check_end(*end);
    }
}

void server_shard::check_end(const core::ended& what) {
    const guest& host = guest_of(*what.who);
    const claim_session& who = *host.session;
    const claim_record& record = host.record();
    if (record.write_short && !who.dropped) {
        rules_->ended_by_limit(record, what.why, who.heard_at + record.lease,
                               who.blocked_at() + settings().io_timeout);
    }
    if (what.why == core::end_reason::expired) {
        // Without a mandate nothing that is held back is tried once more.
        const bool tried = !who.dropped && (!record.write_short || engine_may_act_);
        rules_->expired(
            record,
            {.reading = tried ? who.read_before : last_reading_,
             .last_arrival = process_->machine_->steady.at(host.stream().last_read_arrived()),
             .last_receive = who.heard_at,
             .came_home = who.came_home,
             .unread_before_reading = host.stream().oldest_unread() < who.read_before_real,
             .word_read =
                 host.stream().records() != nullptr && host.stream().records()->peer_ended(),
             .reads = !who.dropped && !record.write_short && !record.write_failed,
             .went_on = last_stop_end()});
    } else if (what.why == core::end_reason::io_timeout) {
        rules_->io_timed_out(record, last_reading_, who.blocked_at(), settings().io_timeout,
                             last_stop_end());
    }
}

void server_shard::on_error_due(const core::connected_session& who, protocol::error_code code,
                                std::string_view /*reason*/) {
    if (alive()) {
        world_->log.note(self_, "connection {} gets ERROR {}", who.id().value, code);
        claim_record& record = rules_->of(static_cast<std::uint32_t>(who.id().value));
        rules_->error_due(record, code);
        if (code == protocol::error_code::not_authorized) {
            rules_->denied(record, std::string{who.lock_name()}, access_.generation);
        }
    }
}

// ---- stops

void server_shard::may_stop() {
    if (alive() && world_->random.chance(world_->plan.server_stops)) {
        ++world_->counts->server_stops;
        stop_here(world_->random.spread(sim_time{1us}, world_->plan.stop_max));
    }
}

// In the midst of a call: the world goes on inside of it, the other shards with it.
void server_shard::stop_here(sim_time pause) {
    const sim_time outer = process_->innermost_stop_;
    stopped_until_ = std::min(outer, world_->events.now() + pause);
    process_->innermost_stop_ = stopped_until_;
    world_->log.note(self_, "stopped in a turn for {} us", pause.count() / 1000);
    while (alive() && world_->events.now() < stopped_until_) {
        static_cast<void>(world_->events.run_next(stopped_until_));
    }
    process_->innermost_stop_ = outer;
    last_stop_end_ = world_->events.now();
    world_->log.note(self_, "goes on");
}

// A stopped process is not stopped further: it would never go on.
bool server_shard::stop_for(sim_time pause) {
    if (world_->events.now() < stopped_until_) {
        return false;
    }
    stopped_until_ = world_->events.now() + pause;
    last_stop_end_ = std::max(last_stop_end_, stopped_until_);
    world_->log.note(self_, "stopped for {} us", pause.count() / 1000);
    return true;
}

nanoseconds server_shard::last_stop_end() const noexcept {
    return last_stop_end_ < sim_time{0} ? nanoseconds{0}
                                        : process_->machine_->steady.at(last_stop_end_);
}

sim_time server_shard::runs_since() const noexcept {
    return world_->events.now() < stopped_until_ ? never : last_stop_end_;
}

const core::session_engine* server_shard::changed_at_rest() noexcept {
    return busy_ || !alive() || !std::exchange(changed_, false) ? nullptr : &engine_;
}

// ---- turns of the loop

void server_shard::schedule_turn(sim_time delay) {
    if (alive() && !turn_scheduled_ && !busy_) {
        turn_scheduled_ = true;
        world_->events.in(delay, [this] {
            turn_scheduled_ = false;
            turn();
        });
    }
}

// A loop gives no order to what is ready.
void server_shard::turn() {
    if (!alive() || busy_) {
        return;
    }
    if (world_->events.now() < stopped_until_) {
        schedule_turn(stopped_until_ - world_->events.now());
        return;
    }
    busy_ = true;
    process_->note_if_all_are_taken();
    may_stop();
    std::array<void (server_shard::*)(), 4> ready{
        &server_shard::take_messages, &server_shard::accept_some, &server_shard::serve_ready,
        &server_shard::judge_due};
    for (std::size_t left = ready.size(); alive() && left > 0; --left) {
        std::swap(ready[world_->random.below(left)], ready[left - 1]);
        (this->*ready[left - 1])();
    }
    close_some_sessions();
    busy_ = false;
    turn_ends();
}

void server_shard::turn_ends() {
    if (!alive()) {
        bury();
        return;
    }
    std::erase_if(guests_, [](const auto& entry) {
        return entry.second->at == guest::phase::gone && !entry.second->queued;
    });
    if (pause_ == accept_pause::for_a_slot && process_->slots_.free() > 0) {
        pause_ = accept_pause::none;
    }
    look_for_unread();
    rules_->look_for_moves(number_, last_stop_end_);
    process_->look_at_descriptors();
    process_->look_at_backlog();
    arm_timer();
    if (!ready_.empty() || judge_due_ || !inbox_.empty() ||
        (accepts() && !process_->backlog_.empty()) ||
        (stage_ == stage::draining && engine_.table().session_count() > 0)) {
        schedule_turn(sim_time{1us});
    }
}

// What is ready now has its turn, in any order; what becomes ready meanwhile waits for the next.
void server_shard::serve_ready() {
    std::vector<std::uint32_t> now_ready;
    now_ready.swap(ready_);
    for (std::size_t left = now_ready.size(); alive() && left > 0; --left) {
        std::swap(now_ready[world_->random.below(left)], now_ready[left - 1]);
        const auto found = guests_.find(now_ready[left - 1]);
        if (found != guests_.end()) {
            found->second->queued = false;
            found->second->serve();  // and it may be gone to another shard
        }
    }
}

void server_shard::judge_due() {
    if (judge_due_) {
        const auto budget = static_cast<std::size_t>(world_->random.between(1, 4));
        engine_call([&] { judge_due_ = engine_.judge(budget); });
    }
}

void server_shard::look_for_unread() const {
    for (const auto& [id, who] : guests_) {
        look_for_unread(*who);
    }
}

// Before each receive too: a turn in which a lease is judged reads what nobody was woken for.
void server_shard::look_for_unread(const guest& who) const {
    const bool reads = who.session && !who.session->dropped;
    const sim_time arrived = reads ? who.stream().oldest_unread() : never;
    if (arrived != never) {
        const sim_time since = std::max({arrived, last_stop_end_, who.admitted_at, who.last_receive,
                                         who.record().unblocked_at});
        rules_->left_unread(who.record(), world_->events.now() - since);
    }
}

void server_shard::arm_timer() {
    const auto deadline = engine_.next_deadline();
    if (!deadline) {
        return;
    }
    const sim_time when = process_->machine_->steady.when(deadline->time_since_epoch());
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

bool server_shard::idle() const noexcept {
    return !busy_ && inbox_.empty() && engine_.table().session_count() == 0 &&
           engine_.table().lock_count() == 0 &&
           std::all_of(guests_.begin(), guests_.end(),
                       [](const auto& entry) { return entry.second->at == guest::phase::gone; });
}

// The objects of a dead process have to be taken apart somehow; its ports are mute by now.
void server_shard::bury() {
    engine_.withhold_grants();
    while (engine_.close_all(64, protocol::error_code::server_shutting_down)) {
    }
    inbox_.clear();
    guests_.clear();
}

// ---- messages

void server_shard::post(message what) {
    if (alive()) {
        inbox_.push_back(std::move(what));
        schedule_turn(world_->random.between(sim_time{0}, wake_latency_max));
    }
}

// What is posted meanwhile waits for the next turn.
void server_shard::take_messages() {
    for (std::size_t left = inbox_.size(); alive() && left > 0; --left) {
        message next = std::move(inbox_.front());
        inbox_.pop_front();
        std::visit([this](auto& what) { take(what); }, next);
        may_stop();
    }
}

// The last that this shard does with it.
void server_shard::hand_over(guest& who, server_shard& home) {
    const auto entry = guests_.find(who.link().id());
    std::unique_ptr<guest> self = std::move(entry->second);
    guests_.erase(entry);
    ++world_->counts->moves;
    world_->log.note(self_, "connection {} moves to shard {}", who.link().id(), home.number_);
    rules_->handed_over(who.record(), home.number_);
    home.post(claim_moves{std::move(self)});
}

void server_shard::take(claim_moves& what) {
    guest& who = *what.who;
    rules_->taken_up(who.record(), last_stop_end_);
    guests_.emplace(who.link().id(), std::move(what.who));
    who.comes_home(*this);
}

// As in src/server/shard.cpp: both in one turn.
void server_shard::take(rules_change& what) {
    access_ = what.access;
    rules_->access_adopted(number_, access_.generation);
    std::size_t revoked = 0;
    engine_call([&] {
        revoked = engine_.revoke_waiters([this](const core::connected_session& who) {
            return access_.permits(guest_of(who).record().identity, who.lock_name());
        });
    });
    if (alive()) {
        rules_->sweep_returned(number_);
    }
    world_->counts->sweeps_that_revoked += revoked > 0 ? 1U : 0U;
}

void server_shard::take(question& what) {
    what.ask(*this);
}

void server_shard::end_by_operator(core::connected_session& who) {
    engine_call([&] {
        engine_.close_with_error(who, core::end_reason::force,
                                 protocol::error_code::closed_by_administrator);
    });
}

void server_shard::take(drain_begins& /*what*/) {
    stage_ = stage::refusing;
    engine_.withhold_grants();
    rules_->grants_withheld(number_);
    stop_listening();
    for (const auto& [id, who] : guests_) {
        if (who->at == guest::phase::handshake) {
            who->refuse(protocol::error_code::server_shutting_down);
        }
    }
    process_->acknowledged(server_process::step::begin_drain);
}

void server_shard::take(drain_finishes& /*what*/) {
    stage_ = stage::draining;
}

// In batches, and each that was idle at the beginning once, as src/server/shard.cpp does it.
void server_shard::take(grants_retried& what) {
    const std::size_t left = std::min(what.left, engine_.idle_count());
    const auto now = std::min(left, static_cast<std::size_t>(world_->random.between(1, 2)));
    engine_call([&] { engine_.retry_grants(now); });
    if (alive() && left > now) {
        post(grants_retried{left - now});
    } else if (alive()) {
        rules_->all_retried(number_);
    }
}

void server_shard::close_some_sessions() {
    if (alive() && stage_ == stage::draining) {
        const auto budget = static_cast<std::size_t>(world_->random.between(1, 3));
        engine_call([&] {
            static_cast<void>(
                engine_.close_all(budget, protocol::error_code::server_shutting_down));
        });
    }
}

// ---- accepting

bool server_shard::wake_for_backlog() {
    if (!accepts() || busy_ || turn_scheduled_) {
        return false;
    }
    schedule_turn(world_->random.between(sim_time{0}, wake_latency_max));
    return true;
}

void server_shard::accept_some() {
    if (!accepts()) {
        return;
    }
    for (std::int64_t left = world_->random.between(1, 3); left > 0 && accept_one(); --left) {
    }
}

// As in src/server/acceptor.cpp: first a slot, then the connection, which another shard may have
// taken meanwhile. Says whether more may be tried.
bool server_shard::accept_one() {
    if (process_->backlog_.empty()) {
        return false;
    }
    descriptor_slots::slot slot = process_->slots_.take();
    may_stop();
    if (!alive()) {
        return false;
    }
    if (!slot) {
        process_->all_taken_at_ = world_->events.now();
        pause_accepting(accept_pause::for_a_slot);
        return false;
    }
    if (world_->random.chance(world_->plan.accept_fails)) {
        ++world_->counts->accept_failures;
        process_->accept_failed_at_ = world_->events.now();
        pause_accepting(accept_pause::for_a_while);
        return false;
    }
    const auto link = process_->take_from_backlog();
    if (!link) {
        return false;
    }
    guests_.emplace((*link)->id(), std::make_unique<guest>(*this, **link, std::move(slot)));
    may_stop();
    return alive();
}

// For a slot at most that long: one that this shard gives back is used at once.
void server_shard::pause_accepting(accept_pause why) {
    ++world_->counts->accept_pauses;
    world_->log.note(self_, "no descriptor: accepts again in 100 ms");
    pause_ = why;
    const sim_time when = process_->machine_->steady.when(clock() + accept_retry_after);
    world_->events.at(when, [this, number = ++pauses_] {
        if (number != pauses_) {
            return;
        }
        pause_ = accept_pause::none;
        if (alive() && !process_->backlog_.empty()) {
            schedule_turn(sim_time{0});
        }
    });
}

// What waits in the backlog is answered, out of the reserve where there is no slot, and so one at a
// time.
void server_shard::stop_listening() {
    while (const auto link = process_->take_from_backlog()) {
        descriptor_slots::slot slot = process_->slots_.take();
        if (slot) {
            guests_.emplace((*link)->id(), std::make_unique<guest>(*this, **link, std::move(slot)));
        } else {
            refuse_at_once(**link);
        }
    }
    listening_ = false;
    process_->shard_stopped_listening();
}

// Without lingering: what the peer sends from now on may destroy the ERROR.
void server_shard::refuse_at_once(connection& link) {
    rules_->of(link.id()).excused = true;
    if (world_->plan.over == transport::plain) {
        constexpr auto code = protocol::error_code::server_shutting_down;
        rules_->error_due(rules_->of(link.id()), code);
        const auto frame = protocol::encode_error(code, protocol::canonical_reason(code));
        const io_result did = link.write(side::server, frame.bytes());
        if (did.status == io_status::done) {
            rules_->wrote(rules_->of(link.id()), frame.bytes().first(did.count),
                          frame.bytes().size());
        }
    }
    std::array<std::byte, core::session_engine::receive_bytes_max> waste{};
    static_cast<void>(link.read(side::server, waste));
    link.close(side::server);
}

}  // namespace monolock::simulation
