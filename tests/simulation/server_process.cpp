#include "simulation/server_process.hpp"

#include <algorithm>
#include <utility>

#include "simulation/guest.hpp"
#include "simulation/server_shard.hpp"

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

constexpr actor server_actor{"server"};

// How long a message is on its way from the control loop to a shard, and back.
constexpr sim_time hop_max = 100us;
// And how long the control loop may be without a processor.
constexpr sim_time control_pause_max = 5ms;

// As src/server/server.cpp has it.
constexpr sim_time begin_drain_time_max = 1s;

core::name_hasher::key draw_key(random_source& random) {
    core::name_hasher::key key{};
    for (unsigned char& byte : key) {
        byte = static_cast<unsigned char>(random.below(256));
    }
    return key;
}

}  // namespace

server_process::server_process(context& world, rules& checks, const server_machine& machine,
                               unsigned number, const access_file& access)
    : world_{&world},
      rules_{&checks},
      machine_{&machine},
      number_{number},
      settings_{.io_timeout = world.plan.io_timeout},
      hasher_{draw_key(world.random)},
      listening_{world.plan.shards},
      slots_{world.plan.descriptors} {
    checks.process_started(number, machine.wall_ms(world.events.now()), world.plan.shards,
                           access.generation);
    for (int shard = 0; shard < world.plan.shards; ++shard) {
        shards_.push_back(std::make_unique<server_shard>(*this, shard, access));
    }
}

server_process::~server_process() {
    if (alive_) {
        crash();
    }
}

// ---- what the shards share

nanoseconds server_process::clock() const noexcept {
    return machine_->steady.at(world_->events.now());
}

server_shard& server_process::home_of(core::name_hash hash) const noexcept {
    return *shards_[core::shard_of(hash, shards_.size())];
}

core::fencing_token server_process::take_token(int shard, std::int64_t wall_ms) {
    last_token_ = core::next_token(last_token_, static_cast<std::uint64_t>(wall_ms));
    if (alive_) {
        rules_->token_taken(shard, last_token_.value, wall_ms);
    }
    return last_token_;
}

// As with a grant delay, or with the limits of one of several, in
// src/server/failover/coordinator.cpp.
void server_process::limit_tokens(std::optional<milliseconds> longest) {
    world_->log.note(server_actor, "tokens for leases up to {} ms", longest.value_or(-1ms).count());
    longest_lease_ = longest;
    tokens_change();
}

void server_process::tokens_change() {
    rules_->tokens_limited(in_mandate_ ? longest_lease_ : milliseconds{0});
    tell_all([](server_shard& shard) { shard.post(server_shard::grants_retried{}); });
}

void server_process::at_end(sim_time until, std::uint32_t& newest, std::function<void()> then) {
    world_->events.at(until, [this, &newest, mine = ++newest, then = std::move(then)] {
        if (mine == newest && alive_) {
            then();
        }
    });
}

// Whoever looks finds that out; nobody is told.
void server_process::put_in_mandate(bool now) {
    if (now) {
        world_->log.note(server_actor, "its mandate is in force again");
        if (!terminating_) {
            world_->told.serves_again(world_->events.now());
        }
    } else {
        world_->log.note(server_actor, "its mandate is over");
        world_->told.sends_away(world_->events.now());
    }
    in_mandate_ = now;
    tokens_change();
}

bool server_process::lapse_mandate(sim_time until) {
    const bool was_in_force = in_mandate_;
    put_in_mandate(false);
    at_end(until, lapses_, [this] { put_in_mandate(true); });
    return was_in_force;
}

bool server_process::refuse_tokens(sim_time until, milliseconds longest) {
    limit_tokens(longest);
    at_end(until, refusals_, [this] { limit_tokens(std::nullopt); });
    return longest < world_->plan.lease_max;
}

// A connection wakes one shard that sleeps; who is awake looks anyway.
void server_process::connection_arrives(connection& link) {
    backlog_.push_back({.link = &link, .since = world_->events.now()});
    const std::size_t first = world_->random.below(shards_.size());
    for (std::size_t at = 0; at < shards_.size(); ++at) {
        if (shards_[(first + at) % shards_.size()]->wake_for_backlog()) {
            return;
        }
    }
}

std::optional<connection*> server_process::take_from_backlog() {
    if (backlog_.empty()) {
        return std::nullopt;
    }
    connection* const link = backlog_.front().link;
    backlog_.pop_front();
    links_.push_back(link);
    return link;
}

// With the last descriptor of the listening socket its backlog goes.
void server_process::shard_stopped_listening() {
    if (--listening_ == 0) {
        for (const in_backlog& waiting : backlog_) {
            rules_->of(waiting.link->id()).excused = true;
            waiting.link->abort(side::server);
        }
        backlog_.clear();
    }
}

void server_process::look_at_backlog() const {
    if (backlog_.empty() || slots_.free() <= 0 || terminating_) {
        return;
    }
    sim_time since = std::max({backlog_.front().since, all_taken_at_, accept_failed_at_});
    for (const auto& shard : shards_) {
        since = std::max(since, shard->runs_since());
    }
    if (since != never) {
        rules_->left_in_backlog(
            rules_->of(backlog_.front().link->id()), world_->events.now() - since,
            world_->events.now() - std::max(accept_failed_at_, others_gave_back_at_));
    }
}

void server_process::note_if_all_are_taken() {
    if (slots_.free() <= 0) {
        all_taken_at_ = world_->events.now();
    }
}

void server_process::look_at_descriptors() {
    std::erase_if(links_, [](const connection* link) { return !link->is_open(side::server); });
    note_if_all_are_taken();
    const bool at_rest = std::none_of(shards_.begin(), shards_.end(),
                                      [](const auto& shard) { return shard->busy_; });
    if (!at_rest) {
        return;  // a slot without a connection yet
    }
    rules_->descriptors(static_cast<int>(links_.size()), slots_.taken(), slots_.limit());
}

void server_process::raise_descriptor_limit(int most) {
    slots_.raise(most);
    others_gave_back_at_ = world_->events.now();
}

bool server_process::take_descriptors(sim_time until, int spare) {
    const int count = std::max(0, slots_.free() - spare);
    slots_.withhold(count);
    others_gave_back_at_ = world_->events.now();  // if these are fewer than before
    world_->log.note(server_actor, "others take {} descriptors, {} are left", count, spare);
    note_if_all_are_taken();
    at_end(until, withholding_, [this] {
        note_if_all_are_taken();
        slots_.withhold(0);
        others_gave_back_at_ = world_->events.now();
    });
    return count > 0;
}

// ---- the control loop

bool server_process::stop_for(sim_time pause) {
    world_->log.note(server_actor, "stopped for {} us", pause.count() / 1000);
    bool any = false;
    for (const auto& shard : shards_) {
        any = shard->stop_for(pause) || any;
    }
    return any;
}

bool server_process::stop_shard_for(sim_time pause) {
    return shards_[world_->random.below(shards_.size())]->stop_for(pause);
}

// What was begun before is told before; between two shards others may have their turn.
void server_process::tell_all(const std::function<void(server_shard&)>& what) {
    for (const auto& shard : shards_) {
        const sim_time pause = world_->random.chance(100'000)
                                   ? world_->random.between(sim_time{0}, control_pause_max)
                                   : world_->random.between(sim_time{0}, hop_max);
        control_busy_until_ = std::max(control_busy_until_, world_->events.now()) + pause;
        world_->events.at(control_busy_until_, [what, to = shard.get()] { what(*to); });
    }
}

void server_process::reload(const access_file& access) {
    world_->log.note(server_actor, "told of access rules {}", access.generation);
    tell_all([access](server_shard& shard) { shard.post(server_shard::rules_change{access}); });
}

void server_process::terminate() {
    if (terminating_) {
        return;
    }
    world_->log.note(server_actor, "told to terminate");
    terminating_ = true;
    rules_->shutdown_begins();
    begin(step::begin_drain, begin_drain_time_max);
}

// All shards stop granting before the first session ends, so that nobody is promoted into a server
// that is going away. A shard that has stalled is not waited for without end.
void server_process::begin(step next, sim_time patience) {
    step_ = next;
    awaited_ = static_cast<int>(shards_.size());
    tell_all([next](server_shard& shard) {
        if (next == step::begin_drain) {
            shard.post(server_shard::drain_begins{});
        } else {
            shard.post(server_shard::drain_finishes{});
        }
    });
    world_->events.in(patience, [this, next] { go_on_from(next); });
}

void server_process::acknowledged(step which) {
    world_->events.in(world_->random.between(sim_time{0}, hop_max), [this, which] {
        if (which == step_ && --awaited_ == 0) {
            go_on_from(which);
        }
    });
}

void server_process::go_on_from(step which) {
    if (!alive_ || which != step_) {
        return;
    }
    if (which == step::begin_drain) {
        begin(step::finish_drain, settings_.io_timeout + 1s);
    } else {
        exit_due_ = true;
    }
}

bool server_process::finished() const noexcept {
    const bool drained =
        terminating_ &&
        std::all_of(shards_.begin(), shards_.end(), [](const auto& one) { return one->drained(); });
    return alive_ && (exit_due_ || drained);
}

bool server_process::idle() const noexcept {
    return backlog_.empty() && slots_.taken() == 0 &&
           std::all_of(shards_.begin(), shards_.end(), [](const auto& one) { return one->idle(); });
}

// ---- the end

void server_process::crash() {
    world_->log.note(server_actor, "process {} is no more", number_);
    alive_ = false;
    for (connection* const link : links_) {
        rules_->of(link->id()).excused = true;
        link->close(side::server);
    }
    for (const in_backlog& waiting : backlog_) {
        rules_->of(waiting.link->id()).excused = true;
        waiting.link->abort(side::server);
    }
    end_of_life();
}

void server_process::power_cut(sim_time until) {
    world_->log.note(server_actor, "process {} loses its machine", number_);
    alive_ = false;
    for (const in_backlog& waiting : backlog_) {
        links_.push_back(waiting.link);
    }
    for (connection* const link : links_) {
        rules_->of(link->id()).excused = true;
        link->vanish(side::server, until);
    }
    end_of_life();
}

// A shard in the midst of a turn buries itself when it comes out of it.
void server_process::end_of_life() {
    backlog_.clear();
    rules_->process_ended();
    for (const auto& shard : shards_) {
        if (!shard->busy_) {
            shard->bury();
        }
    }
}

}  // namespace monolock::simulation
