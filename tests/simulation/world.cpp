#include "simulation/world.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "simulation/blunt_peer.hpp"
#include "simulation/honest_client.hpp"
#include "simulation/operator_desk.hpp"
#include "simulation/server_process.hpp"
#include "simulation/server_shard.hpp"

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

constexpr sim_time connect_timeout = 5s;
constexpr sim_time safety_time_max = 600s;

class whole_world final : public dialer {
public:
    whole_world(const run_request& what, tally& totals);
    void run();

private:
    void dial(int identity, std::function<void(connection*)> done) override;
    void syn_arrives(int identity, const std::function<void(connection*)>& done);

    void start_server();
    void server_is_gone(sim_time downtime);
    void after_each_step();

    void write_access_file(const access_table& table);
    void change_access();

    void schedule_fault();
    [[nodiscard]] fault draw_fault();
    // All say whether it had an effect, but for the operator, whose desk counts its own.
    [[nodiscard]] bool strike(fault kind);
    [[nodiscard]] bool strike_link(fault kind, connection& link);
    [[nodiscard]] bool strike_client(fault kind, honest_client& who);
    [[nodiscard]] bool strike_server(fault kind);
    void ask_operator(fault kind);
    bool clog_next(std::size_t first, std::size_t end, sim_time each);
    [[nodiscard]] sim_time draw_outage();
    [[nodiscard]] std::size_t draw_victim();
    [[nodiscard]] connection* draw_link();

    void faults_stop();
    void everyone_is_served();
    void wait_for_all(bool (honest_client::*what)() const noexcept, sim_time until);

    context world_;
    rules rules_;
    server_machine machine_;
    std::vector<std::unique_ptr<connection>> links_;
    std::vector<std::unique_ptr<server_process>> processes_;  // the last one may be alive
    std::vector<std::unique_ptr<honest_client>> clients_;
    std::vector<std::unique_ptr<blunt_peer>> peers_;
    std::vector<rules::belief> beliefs_;
    operator_desk operator_;
    access_file access_;  // as the file is now
    bool calm_ = false;
    sim_time quiet_from_ = never;  // no fault has left a trace by then
};

server_machine draw_machine(context& world) {
    const std::int64_t drift = world.random.drift(world.plan.drift_max, world.plan.drift_at_limits);
    return {.steady = {world.random.between(sim_time{1s}, sim_time{1000s}), 1000 + drift},
            .wall_ms_at_start = 1'700'000'000'000 + world.random.between(0, 1'000'000)};
}

whole_world::whole_world(const run_request& what, tally& totals)
    : world_{what, totals},
      rules_{world_, world_.plan.locks},
      machine_{draw_machine(world_)},
      operator_{world_, rules_} {
    journal::current() = &world_.log;
    for (int number = 0; number < world_.plan.clients; ++number) {
        clients_.push_back(std::make_unique<honest_client>(world_, rules_, *this, number));
    }
    for (int number = 0; number < world_.plan.blunt_peers; ++number) {
        peers_.push_back(std::make_unique<blunt_peer>(world_, rules_, *this, number));
    }
}

// ---- connections

void whole_world::dial(int identity, std::function<void(connection*)> done) {
    if (world_.random.chance(world_.plan.connect_fails)) {
        world_.events.in(connect_timeout, [done = std::move(done)] { done(nullptr); });
        return;
    }
    world_.events.in(world_.random.between(world_.plan.delay_min, world_.plan.delay_max),
                     [this, identity, done = std::move(done)] { syn_arrives(identity, done); });
}

void whole_world::syn_arrives(int identity, const std::function<void(connection*)>& done) {
    const sim_time back = world_.random.between(world_.plan.delay_min, world_.plan.delay_max);
    if (!processes_.back()->listens()) {
        world_.events.in(back, [done] { done(nullptr); });
        return;
    }
    ++world_.counts->connections;
    const auto id = static_cast<std::uint32_t>(links_.size());
    connection* const link = links_.emplace_back(std::make_unique<connection>(world_, id)).get();
    rules_.of(id).identity = identity;
    world_.told.connects(id, world_.events.now());
    processes_.back()->connection_arrives(*link);
    world_.events.in(back, [done, link] { done(link); });
}

// ---- the server's lives

void whole_world::start_server() {
    const auto number = static_cast<unsigned>(processes_.size() + 1);
    processes_.push_back(
        std::make_unique<server_process>(world_, rules_, machine_, number, access_));
}

void whole_world::server_is_gone(sim_time downtime) {
    world_.events.in(downtime, [this] { start_server(); });
}

void whole_world::after_each_step() {
    server_process& server = *processes_.back();
    for (const auto& shard : server.shards()) {
        if (const core::session_engine* const engine = shard->changed_at_rest()) {
            world_.log.checking_table(true);
            engine->table().check_invariants();
            world_.log.checking_table(false);
        }
    }
    beliefs_.clear();
    for (const auto& who : clients_) {
        if (const auto belief = who->belief()) {
            beliefs_.push_back(*belief);
        }
    }
    rules_.believers(beliefs_);
    if (server.finished()) {
        server.crash();  // the process exits
        server_is_gone(world_.random.spread(sim_time{100us}, sim_time{500ms}));
    }
}

// ---- access rules

void whole_world::write_access_file(const access_table& table) {
    access_ = {.rules = std::make_shared<config::access_rules>(table.rules()),
               .generation = access_.generation + 1};
    rules_.access_written(access_.generation, table);
}

void whole_world::change_access() {
    access_table table{world_.plan.clients + world_.plan.blunt_peers, world_.plan.locks};
    if (!calm_) {
        table.draw(world_.random, world_.plan.permitted);
    }
    write_access_file(table);
    if (!processes_.empty() && processes_.back()->serves()) {
        processes_.back()->reload(access_);
    }
}

// ---- faults

void whole_world::schedule_fault() {
    const sim_time gap = world_.random.between(sim_time{1us}, 2 * world_.plan.fault_gap);
    world_.events.in(gap, [this] {
        if (!calm_) {
            if (const fault kind = draw_fault(); strike(kind)) {
                world_.count(kind);
            }
            schedule_fault();
        }
    });
}

fault whole_world::draw_fault() {
    const auto drawn = world_.random.weighted(world_.plan.weights);
    return drawn ? static_cast<fault>(*drawn) : fault::client_pause;
}

sim_time whole_world::draw_outage() {
    return world_.random.chance(500'000)
               ? world_.random.spread(sim_time{1ms}, world_.plan.stop_max)
               : world_.random.between(sim_time{1ms}, world_.plan.stop_max);
}

// An owner has more to lose.
std::size_t whole_world::draw_victim() {
    if (!beliefs_.empty() && world_.random.chance(500'000)) {
        return static_cast<std::size_t>(beliefs_[world_.random.below(beliefs_.size())].client);
    }
    return world_.random.below(clients_.size());
}

// Any of the latest: a connection whose client is gone still matters to the server.
connection* whole_world::draw_link() {
    if (connection* const link = clients_[draw_victim()]->link();
        link != nullptr && world_.random.chance(500'000)) {
        return link;
    }
    const std::size_t recent = std::min<std::size_t>(links_.size(), 12);
    return recent == 0 ? nullptr : links_[links_.size() - 1 - world_.random.below(recent)].get();
}

bool whole_world::strike(fault kind) {
    switch (kind) {
        case fault::clog:
        case fault::stall_up:
        case fault::stall_down:
        case fault::drop_up:
        case fault::drop_down:
        case fault::drop_both:
        case fault::server_verdict:
        case fault::client_verdict:
        case fault::half_close: {
            connection* const link = draw_link();
            return link != nullptr && strike_link(kind, *link);
        }
        case fault::client_crash:
        case fault::client_vanish:
        case fault::client_pause:
            return strike_client(kind, *clients_[draw_victim()]);
        case fault::server_pause:
        case fault::shard_pause:
        case fault::descriptors_taken:
        case fault::tokens_refused:
        case fault::mandate_lapse:
        case fault::server_crash:
        case fault::server_power_cut:
        case fault::server_shutdown:
            return processes_.back()->serves() && strike_server(kind);
        case fault::admin_list:
        case fault::admin_release:
        case fault::admin_release_by_token:
        case fault::admin_kick:
            if (processes_.back()->alive()) {
                ask_operator(kind);
            }
            return false;
        case fault::clog_round:
            return clog_next(0, links_.size(), draw_outage() / world_.plan.clients);
        case fault::wall_step:
            machine_.wall_steps_ms += world_.random.between(-3'600'000, 3'600'000);
            return true;
        case fault::access_change:
            change_access();
            return true;
    }
    return false;
}

bool stall_both(connection& link, sim_time until) {
    const bool up = link.stall(side::client, until);
    return link.stall(side::server, until) || up;
}

bool whole_world::strike_link(fault kind, connection& link) {
    const sim_time until = world_.events.now() + draw_outage();
    const bool stalled = link.stalled(side::client) || link.stalled(side::server);
    switch (kind) {
        case fault::clog:
            return stall_both(link, until);
        case fault::stall_up:
            return link.stall(side::client, until);
        case fault::stall_down:
            return link.stall(side::server, until);
        case fault::drop_up:
            return link.stall(side::client, never);
        case fault::drop_down:
            return link.stall(side::server, never);
        case fault::drop_both:
            return stall_both(link, never);
        case fault::server_verdict:
            // A kernel gives up only on what does not get through.
            if (!stalled) {
                link.stall(side::server, never);
            }
            return link.give_up(side::server);
        case fault::client_verdict:
            if (!stalled) {
                link.stall(side::client, never);
            }
            return link.give_up(side::client);
        case fault::half_close:
            return link.is_open(side::client) && link.shut_down_sending(side::client);
        default:
            return false;
    }
}

bool whole_world::strike_client(fault kind, honest_client& who) {
    return kind == fault::client_pause   ? who.stop_for(draw_outage())
           : kind == fault::client_crash ? who.crash()
                                         : who.vanish();
}

bool whole_world::strike_server(fault kind) {
    server_process& server = *processes_.back();
    const sim_time downtime = world_.random.spread(sim_time{100us}, world_.plan.stop_max);
    switch (kind) {
        case fault::server_pause:
            return server.stop_for(draw_outage());
        case fault::shard_pause:
            return server.stop_shard_for(draw_outage());
        case fault::descriptors_taken: {
            const auto spare = static_cast<int>(world_.random.below(3));
            return server.take_descriptors(world_.events.now() + draw_outage(), spare);
        }
        case fault::tokens_refused: {
            const bool all = world_.random.chance(500'000);
            const milliseconds longest{all ? 0
                                           : world_.random.between(world_.plan.lease_min.count(),
                                                                   world_.plan.lease_max.count())};
            return server.refuse_tokens(world_.events.now() + draw_outage(), longest);
        }
        case fault::mandate_lapse:
            return server.lapse_mandate(world_.events.now() + draw_outage());
        case fault::server_crash:
            server.crash();
            server_is_gone(downtime);
            return true;
        case fault::server_power_cut:
            server.power_cut(world_.events.now() + downtime);
            server_is_gone(downtime);
            return true;
        default:
            server.terminate();
            return true;
    }
}

void whole_world::ask_operator(fault kind) {
    server_process& server = *processes_.back();
    if (kind == fault::admin_list) {
        world_.count(kind);
        operator_.list(server);
    } else if (kind == fault::admin_release) {
        operator_.release(server);
    } else if (kind == fault::admin_release_by_token) {
        operator_.release_by_token(server);
    } else {
        operator_.kick(server);
    }
}

// From the oldest connection to the newest that there was, each for a share of the time.
bool whole_world::clog_next(std::size_t first, std::size_t end, sim_time each) {
    const auto is_there = [](const auto& link) {
        return link->is_open(side::client) || link->is_open(side::server);
    };
    while (first < end && !is_there(links_[first])) {
        ++first;
    }
    if (calm_ || first >= end) {
        return false;
    }
    const sim_time until = world_.events.now() + each;
    const bool any = stall_both(*links_[first], until);
    world_.events.at(until, [this, first, end, each] { clog_next(first + 1, end, each); });
    return any;
}

// ---- the run

void whole_world::faults_stop() {
    calm_ = true;
    world_.log.note({}, "faults stop");
    // What has begun before may take until then to end.
    quiet_from_ = world_.events.now() + world_.plan.stop_max + 2 * world_.plan.io_timeout + 2s;
    calm(world_.plan);
    if (world_.plan.access_rules) {
        change_access();  // everybody may be served
    }
    processes_.back()->raise_descriptor_limit(world_.plan.descriptors);
    for (const auto& link : links_) {
        link->recover(world_.plan.drops_heal);
    }
    for (const auto& who : clients_) {
        who->calm_down(quiet_from_);
    }
    for (const auto& who : peers_) {
        who->calm_down();
    }
}

void whole_world::wait_for_all(bool (honest_client::*what)() const noexcept, sim_time until) {
    const auto all = [this, what] {
        return std::all_of(clients_.begin(), clients_.end(),
                           [what](const auto& who) { return (*who.*what)(); });
    };
    while (!all() && world_.events.run_next(until)) {
    }
    for (const auto& who : clients_) {
        if (!(*who.*what)()) {
            world_.log.fail(rule::everyone_served,
                            "client " + std::to_string(who->number()) + " still waits");
        }
    }
}

// Once as soon as that is possible, and once in the quiet, when nothing may be lost any more.
void whole_world::everyone_is_served() {
    const swarm& plan = world_.plan;
    const sim_time service = plan.stop_max + 3 * (sim_time{plan.lease_max} * 10 / 9) +
                             6 * plan.io_timeout + connect_timeout +
                             (plan.clients + plan.blunt_peers) * (plan.hold_max + 20ms) + 1s;
    wait_for_all(&honest_client::served, world_.events.now() + service);
    wait_for_all(&honest_client::done, std::max(quiet_from_, world_.events.now()) + service);
}

void whole_world::run() {
    const swarm& drawn = world_.plan;
    world_.log.note({}, "leases {} to {} ms", drawn.lease_min.count(), drawn.lease_max.count());
    world_.log.note({}, "{} locks, {} shards, {} descriptors, {} blunt peers", drawn.locks,
                    drawn.shards, drawn.descriptors, drawn.blunt_peers);
    world_.log.note({}, "delays {} to {} us, buffers of {} and {} bytes",
                    drawn.delay_min.count() / 1000, drawn.delay_max.count() / 1000,
                    drawn.send_buffer, drawn.receive_buffer);
    world_.log.note({}, "I/O timeout {} ms, stops up to {} ms, a fault each {} ms",
                    drawn.io_timeout.count() / 1'000'000, drawn.stop_max.count() / 1'000'000,
                    drawn.fault_gap.count() / 1'000'000);
    if (world_.plan.access_rules) {
        change_access();
    }
    start_server();
    world_.events.after_each([this] { after_each_step(); });
    for (const auto& who : clients_) {
        who->start();
    }
    for (const auto& who : peers_) {
        who->start();
    }
    schedule_fault();
    while (world_.events.step() < world_.plan.safety_steps &&
           world_.events.run_next(safety_time_max)) {
    }

    faults_stop();
    everyone_is_served();
    const swarm& plan = world_.plan;
    const sim_time lease = sim_time{plan.lease_max} * 10 / 9;
    const sim_time empty_by = world_.events.now() + 3 * lease + 6 * plan.io_timeout + 1s;
    while (!processes_.back()->idle() && world_.events.run_next(empty_by)) {
    }
    if (!processes_.back()->idle()) {
        world_.log.fail(rule::nothing_left, "the server still has sessions, locks or connections");
    }
    if (const std::string wrong = world_.told.verdict(); !wrong.empty()) {
        world_.log.fail(rule::client_history, wrong);
    }
    world_.counts->losses_with_cause += world_.told.losses_with_cause();
    ++world_.counts->seeds;
    world_.counts->runs_over_records += world_.plan.over == transport::records ? 1U : 0U;
    world_.counts->runs_with_shards += world_.plan.shards > 1 ? 1U : 0U;
    world_.counts->steps += world_.events.step();
    world_.counts->digest += world_.log.digest();
    world_.counts->simulated += world_.events.now();
    world_.events.after_each({});
    journal::current() = nullptr;
}

}  // namespace

void run(const run_request& what, tally& totals) {
    whole_world{what, totals}.run();
}

}  // namespace monolock::simulation
