#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulation/failover/books.hpp"
#include "simulation/failover/client.hpp"
#include "simulation/failover/context.hpp"
#include "simulation/failover/server.hpp"
#include "simulation/failover/store.hpp"

namespace monolock::simulation::failover {

namespace {

using namespace std::chrono_literals;

class whole_world final : public harbour, public pier {
public:
    whole_world(const run_request& what, tally& totals);
    void run();

private:
    bool connect(const connection_ptr& link) override;
    void send(const connection_ptr& link, call what) override;
    void send(const connection_ptr& link, reply what, std::int64_t term) override;
    void believes_now(int number) override { books_.believes_now(number); }

    void schedule_fault();
    [[nodiscard]] fault draw_fault();
    void strike(fault kind);
    // Each says whether it had an effect; those that befall calls are counted when one meets them.
    bool strike_store(fault kind);
    bool strike_server(fault kind, server& who);
    bool strike_client(fault kind, client& who);
    bool force_somebody();
    void disturb_path(fault kind);
    void cut(fault kind);
    [[nodiscard]] sim_time draw_outage();
    [[nodiscard]] std::int64_t draw_step();

    void run_until(sim_time when);
    void faults_stop();
    [[nodiscard]] sim_time all_is_over() const;
    void somebody_is_active();
    void everyone_is_served();
    [[nodiscard]] sim_time longest_ttl() const;

    context world_;
    store store_;
    store_path path_;
    std::vector<std::unique_ptr<client>> clients_;
    books books_;
    std::vector<std::unique_ptr<server>> servers_;
    sim_time downtime_until_{0};
    bool calm_ = false;
};

whole_world::whole_world(const run_request& what, tally& totals)
    : world_{what, totals}, store_{world_}, books_{world_, store_, clients_} {
    journal::current() = &world_.log;
    const auto servers = static_cast<std::size_t>(world_.plan.servers);
    path_.mute.resize(servers);
    path_.deaf.resize(servers);
    store_.before_each_put(
        [this](const auto& before, const auto& after) { books_.puts(before, after); });
    for (int number = 0; number < world_.plan.servers; ++number) {
        servers_.push_back(std::make_unique<server>(world_, store_, path_, books_, *this, number));
    }
    for (int number = 0; number < world_.plan.clients; ++number) {
        clients_.push_back(std::make_unique<client>(world_, *this, number));
    }
}

// ---- connections

bool whole_world::connect(const connection_ptr& link) {
    return servers_.at(static_cast<std::size_t>(link->server))->accepts(link);
}

void whole_world::send(const connection_ptr& link, call what) {
    const sim_time delay = world_.random.between(sim_time{20us}, world_.plan.client_delay_max);
    link->up_free = std::max(link->up_free, world_.events.now() + delay);
    world_.events.at(link->up_free, [this, link, what] {
        if (!link->cut) {
            servers_.at(static_cast<std::size_t>(link->server))->arrives(link, what);
        }
    });
}

void whole_world::send(const connection_ptr& link, reply what, std::int64_t term) {
    const sim_time delay = world_.random.between(sim_time{20us}, world_.plan.client_delay_max);
    link->down_free = std::max(link->down_free, world_.events.now() + delay);
    world_.events.at(link->down_free, [this, link, what, term] {
        if (!link->cut) {
            clients_.at(static_cast<std::size_t>(link->client))->hear(link, what, term);
        }
    });
}

// ---- faults

sim_time whole_world::longest_ttl() const {
    return std::max<sim_time>(world_.plan.ttl_min,
                              *std::max_element(world_.plan.ttl.begin(), world_.plan.ttl.end()));
}

sim_time whole_world::draw_outage() {
    return world_.random.spread(longest_ttl() / 50, 3 * longest_ttl());
}

// A second as likely as a day, either way.
std::int64_t whole_world::draw_step() {
    const std::int64_t by = world_.random.spread(1'000, 100'000'000);
    return world_.random.chance(500'000) ? by : -by;
}

// What must coincide to do harm seldom would, one by one: so faults come in clusters, too.
void whole_world::schedule_fault() {
    const sim_time most =
        world_.random.chance(world_.plan.in_a_row) ? longest_ttl() / 4 : 2 * world_.plan.fault_gap;
    const sim_time gap = world_.random.between(sim_time{1us}, most);
    world_.events.in(gap, [this] {
        if (!calm_) {
            strike(draw_fault());
            schedule_fault();
        }
    });
}

fault whole_world::draw_fault() {
    const auto drawn = world_.random.weighted(world_.plan.weights);
    return drawn ? static_cast<fault>(*drawn) : fault::server_crash;
}

void whole_world::strike(fault kind) {
    world_.log.note({}, "fault {}", static_cast<int>(kind));
    const auto number = world_.random.below(servers_.size());
    bool befell = false;
    switch (kind) {
        case fault::store_silent:
        case fault::store_refuses:
        case fault::store_slow:
        case fault::state_unreadable:
            disturb_path(kind);
            break;
        case fault::lease_revoked:
        case fault::key_deleted:
        case fault::key_touched:
            befell = strike_store(kind);
            break;
        case fault::cut_from_store:
        case fault::deaf_to_store:
        case fault::mute_to_store:
            cut(kind);
            break;
        case fault::watch_breaks:
            befell = store_.break_watch(static_cast<int>(number));
            break;
        case fault::watch_falls_silent:
            befell = store_.silence_watch(static_cast<int>(number));
            break;
        case fault::server_pause:
        case fault::server_crash:
        case fault::power_cut:
        case fault::server_shutdown:
        case fault::wall_step:
        case fault::clients_cut:
            befell = strike_server(kind, *servers_.at(number));
            break;
        case fault::burst:
            for (const auto& who : servers_) {
                befell = who->burst() || befell;
            }
            break;
        case fault::force_release:
            befell = force_somebody();
            break;
        case fault::client_cut:
        case fault::clients_change:
            befell = strike_client(kind, *clients_.at(world_.random.below(clients_.size())));
            break;
    }
    if (befell) {
        world_.count(kind);
    }
}

void whole_world::disturb_path(fault kind) {
    outage& what = kind == fault::store_silent    ? path_.silent
                   : kind == fault::store_refuses ? path_.refuses
                   : kind == fault::store_slow    ? path_.slow
                                                  : path_.unreadable;
    what.begins(world_.events.now() + draw_outage(), kind);
}

bool whole_world::strike_store(fault kind) {
    if (!store_.active()) {
        return false;
    }
    if (kind == fault::lease_revoked) {
        store_.revoke_by_hand();
    } else if (kind == fault::key_deleted) {
        store_.delete_by_hand();
    } else {
        store_.touch_by_hand();
    }
    return true;
}

bool whole_world::strike_client(fault kind, client& who) {
    if (kind == fault::clients_change) {
        return who.change_lease();
    }
    return who.link() && !std::exchange(who.link()->cut, true);
}

// An operator ends an owner: the first from a drawn client on.
bool whole_world::force_somebody() {
    const auto first = world_.random.below(clients_.size());
    for (std::size_t at = 0; at < clients_.size(); ++at) {
        const connection_ptr& link = clients_[(first + at) % clients_.size()]->link();
        if (link && servers_.at(static_cast<std::size_t>(link->server))->force(link)) {
            return true;
        }
    }
    return false;
}

// The active server more often than not.
void whole_world::cut(fault kind) {
    auto number = world_.random.below(servers_.size());
    for (std::size_t at = 0; at < servers_.size(); ++at) {
        if (servers_.at(at)->is_active() && world_.random.chance(700'000)) {
            number = at;
        }
    }
    const sim_time until = world_.events.now() + draw_outage();
    if (kind != fault::deaf_to_store) {
        path_.mute.at(number).begins(until, kind);
    }
    if (kind != fault::mute_to_store) {
        const bool counted = kind == fault::cut_from_store;  // by its requests
        path_.deaf.at(number).begins(until, counted ? std::nullopt : std::optional{kind});
        store_.silence_watch(static_cast<int>(number));
    }
}

bool whole_world::strike_server(fault kind, server& who) {
    const sim_time downtime = world_.random.spread(sim_time{30ms}, 2 * longest_ttl());
    switch (kind) {
        case fault::server_pause:
            return who.pause(world_.random.spread(longest_ttl() / 50, world_.plan.pause_max));
        case fault::wall_step:
            who.step_wall(draw_step());
            return true;
        case fault::server_shutdown:
            return who.shut_down();
        case fault::clients_cut:
            return who.cut_clients();
        default:
            downtime_until_ = std::max(downtime_until_, world_.events.now() + downtime);
            return who.crash(kind == fault::server_crash, downtime);
    }
}

// ---- phases

void whole_world::run_until(sim_time when) {
    while (world_.events.run_next(when)) {
    }
}

void whole_world::faults_stop() {
    calm_ = true;
    calm(world_.plan);
    world_.log.note({}, "faults stop");
    const auto servers = path_.mute.size();
    path_ = {};
    path_.mute.resize(servers);
    path_.deaf.resize(servers);
}

// From then on nothing of what the faults left is there any more.
sim_time whole_world::all_is_over() const {
    sim_time last = std::max(store_.leases_end(), downtime_until_) + 7s;
    for (const auto& who : servers_) {
        last = std::max(last, who->paused_until());
    }
    return last;
}

void whole_world::somebody_is_active() {
    run_until(all_is_over());
    // A pause that ended just now may have left a lease behind; then nothing pauses any more.
    run_until(all_is_over() + 4 * longest_ttl());
    const bool any = std::any_of(servers_.begin(), servers_.end(),
                                 [](const auto& who) { return who->is_active(); });
    if (!any) {
        world_.fail(rule::somebody_active, "nobody is");
    }
}

void whole_world::everyone_is_served() {
    const std::uint64_t failovers = world_.counts->failovers;
    std::vector<std::uint64_t> before;
    for (const auto& who : clients_) {
        before.push_back(who->times_served());
    }
    const sim_time lease = world_.plan.lease_max;
    const sim_time delay = world_.plan.automatic ? lease : sim_time{world_.plan.fixed_delay};
    run_until(world_.events.now() + delay * 10 / 9 + 3 * lease + 10s);
    for (std::size_t at = 0; at < clients_.size(); ++at) {
        if (clients_.at(at)->times_served() == before.at(at)) {
            world_.fail(rule::everyone_served, "client " + std::to_string(at) + " is not");
        }
    }
    if (world_.counts->failovers != failovers) {
        world_.fail(rule::somebody_active, "another one has become it");
    }
}

void whole_world::run() {
    for (const auto& who : servers_) {
        world_.events.at(world_.random.between(sim_time{0}, longest_ttl()),
                         [&who] { who->start(); });
    }
    for (const auto& who : clients_) {
        who->start();
    }
    schedule_fault();
    // An event, so that it happens in time even if a server is stopped within a turn.
    world_.events.at(world_.plan.safety_time, [this] { faults_stop(); });
    run_until(world_.plan.safety_time);
    somebody_is_active();
    everyone_is_served();
    ++world_.counts->seeds;
    world_.counts->steps += world_.events.step();
    world_.counts->simulated += world_.events.now();
    world_.counts->digest += world_.log.digest();
}

}  // namespace

void run(const run_request& what, tally& totals) {
    whole_world{what, totals}.run();
}

}  // namespace monolock::simulation::failover
