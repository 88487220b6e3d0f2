#include "simulation/failover/swarm.hpp"

#include <algorithm>

namespace monolock::simulation::failover {

namespace {

using namespace std::chrono_literals;

// Absent in half of the runs, else anything up to `most`.
per_million perhaps(random_source& random, per_million most) {
    return random.chance(500'000) ? 0U : static_cast<per_million>(random.spread(most / 64, most));
}

void draw_servers(swarm& plan, random_source& random) {
    plan.servers = static_cast<int>(random.between(2, 3));
    const bool alike = random.chance(600'000);
    const seconds common{random.between(1, 5)};
    for (seconds& ttl : plan.ttl) {
        ttl = alike ? common : seconds{random.spread(1, 10)};
    }
    plan.ttl_min = random.chance(800'000) ? 1s : seconds{random.between(2, 6)};
    plan.automatic = random.chance(800'000);
    plan.fixed_delay = milliseconds{random.chance(500'000) ? 0 : random.spread(10, 5'000)};
    plan.covered_max = milliseconds{random.chance(700'000) ? 60'000 : random.spread(500, 10'000)};
    plan.drift_at_limits = random.chance(300'000);
    plan.drift_max = random.chance(250'000) ? 0 : 100;
}

void draw_clients(swarm& plan, random_source& random) {
    plan.clients = static_cast<int>(random.between(2, 5));
    plan.locks = random.chance(400'000) ? 1 : 2;
    const milliseconds low{random.spread(200, 15'000)};
    const milliseconds high{random.spread(200, 15'000)};
    plan.lease_min = std::min(low, high);
    plan.lease_max = std::max(low, high);
    plan.client_delay_max = random.spread(sim_time{100us}, sim_time{plan.lease_min} / 8);
    plan.error_lost = perhaps(random, 1'000'000);
    plan.hold_max = random.spread(sim_time{50ms}, sim_time{20s});
    plan.survey_delay_max =
        random.chance(700'000) ? sim_time{5ms} : random.spread(sim_time{5ms}, sim_time{5s});
}

void draw_store(swarm& plan, random_source& random) {
    const sim_time ttl = *std::min_element(plan.ttl.begin(), plan.ttl.end());
    plan.store_delay_max = random.spread(sim_time{500us}, ttl / 12);
    plan.request_lost = perhaps(random, 200'000);
    plan.answer_lost = perhaps(random, 300'000);
    plan.request_late = perhaps(random, 200'000);
    plan.late_max = random.spread(ttl / 8, 4 * ttl);
    plan.request_twice = perhaps(random, 50'000);
    plan.lease_short = perhaps(random, 50'000);
    plan.lease_long = perhaps(random, 1'000'000);
    plan.lease_long_max = random.between(2, 5);
    plan.kept_blindly = perhaps(random, 1'000'000);
    plan.watch_delay_max =
        random.spread(sim_time{1ms}, random.chance(700'000) ? ttl / 12 : 2 * ttl);
}

void draw_faults(swarm& plan, random_source& random) {
    const sim_time ttl = *std::max_element(plan.ttl.begin(), plan.ttl.end());
    plan.stops = perhaps(random, 20'000);
    plan.pause_max = random.spread(ttl / 4, random.chance(980'000) ? 6 * ttl : 100 * ttl);
    plan.fault_gap = random.spread(ttl / 4, 20 * ttl);
    plan.in_a_row = perhaps(random, 800'000);
    for (std::uint32_t& weight : plan.weights) {
        weight = random.chance(400'000) ? 0U : static_cast<std::uint32_t>(random.spread(1, 100));
    }
    plan.safety_time = random.spread(8 * ttl, 60 * ttl);
}

}  // namespace

swarm draw_swarm(random_source& random) {
    swarm plan;
    draw_servers(plan, random);
    draw_clients(plan, random);
    draw_store(plan, random);
    draw_faults(plan, random);
    return plan;
}

void calm(swarm& plan) {
    plan.store_delay_max = 1ms;
    plan.request_lost = 0;
    plan.answer_lost = 0;
    plan.request_late = 0;
    plan.request_twice = 0;
    plan.lease_short = 0;
    plan.lease_long = 0;
    plan.kept_blindly = 0;
    plan.watch_delay_max = 1ms;
    plan.client_delay_max = 1ms;
    plan.error_lost = 0;
    plan.stops = 0;
    plan.weights = {};
    plan.hold_max = 1s;
    plan.survey_delay_max = 5ms;
}

std::string_view to_string(fault kind) noexcept {
    switch (kind) {
        case fault::store_silent:
            return "store silent";
        case fault::store_refuses:
            return "store refuses";
        case fault::store_slow:
            return "store slow";
        case fault::cut_from_store:
            return "server cut off from the store";
        case fault::deaf_to_store:
            return "  its answers only";
        case fault::mute_to_store:
            return "  its requests only";
        case fault::lease_revoked:
            return "lease revoked by hand";
        case fault::key_deleted:
            return "key deleted by hand";
        case fault::key_touched:
            return "key put by hand";
        case fault::watch_breaks:
            return "watch broke";
        case fault::watch_falls_silent:
            return "watch fell silent";
        case fault::server_pause:
            return "server paused";
        case fault::server_crash:
            return "server crashed";
        case fault::power_cut:
            return "server's machine died";
        case fault::server_shutdown:
            return "server shut down";
        case fault::wall_step:
            return "wall clock stepped";
        case fault::client_cut:
            return "connection cut silently";
        case fault::clients_cut:
            return "server cut off from clients";
        case fault::clients_change:
            return "client with another lease";
        case fault::force_release:
            return "owner ended by an operator";
        case fault::burst:
            return "burst of grants";
        case fault::state_unreadable:
            return "state unreadable";
    }
    return "?";
}

tally& tally::operator+=(const tally& more) {
    seeds += more.seeds;
    steps += more.steps;
    digest += more.digest;
    simulated += more.simulated;
    failovers += more.failovers;
    at_once += more.at_once;
    before_a_ttl += more.before_a_ttl;
    grants += more.grants;
    answers += more.answers;
    transactions += more.transactions;
    unanswered += more.unanswered;
    applied_late += more.applied_late;
    recovered += more.recovered;
    refused += more.refused;
    for (std::size_t at = 0; at < losses.size(); ++at) {
        losses.at(at) += more.losses.at(at);
    }
    raises_awaited += more.raises_awaited;
    leases_awaited += more.leases_awaited;
    lowered += more.lowered;
    beliefs_outlived += more.beliefs_outlived;
    stops += more.stops;
    for (std::size_t at = 0; at < faults.size(); ++at) {
        faults.at(at) += more.faults.at(at);
    }
    return *this;
}

}  // namespace monolock::simulation::failover
