#include "simulation/swarm.hpp"

#include <algorithm>

namespace monolock::simulation {

namespace {

using namespace std::chrono_literals;

// Absent in half of the runs, else anything up to `most`.
per_million perhaps(random_source& random, per_million most) {
    return random.chance(500'000) ? 0U : static_cast<per_million>(random.spread(most / 64, most));
}

void draw_leases(swarm& plan, random_source& random) {
    const milliseconds low{random.spread(50, 10'000)};
    const milliseconds high{random.spread(50, 10'000)};
    plan.lease_min = std::min(low, high);
    plan.lease_max = std::max(low, high);
}

void draw_network(swarm& plan, random_source& random) {
    const sim_time lease = plan.lease_min;
    plan.delay_min = random.spread(sim_time{10us}, sim_time{1ms});
    plan.delay_max = plan.delay_min + random.spread(sim_time{10us}, lease / 4);
    plan.spike = perhaps(random, 50'000);
    plan.spike_max = random.spread(lease / 8, sim_time{plan.lease_max} * 3 / 2);
    plan.split = perhaps(random, 800'000);
    const bool cramped = random.chance(300'000);
    plan.send_buffer = static_cast<std::size_t>(cramped ? random.between(1, 24) : 2048);
    plan.receive_buffer = static_cast<std::size_t>(cramped ? random.between(1, 24) : 2048);
    plan.connect_fails = perhaps(random, 100'000);
}

void draw_faults(swarm& plan, random_source& random) {
    plan.server_stops = perhaps(random, 3'000);
    plan.client_stops = perhaps(random, 10'000);
    plan.stop_max = random.between(sim_time{plan.lease_max} / 4, sim_time{plan.lease_max} * 3 / 2);
    plan.fault_gap = random.spread(sim_time{plan.lease_min} / 8, sim_time{plan.lease_max} * 4);
    for (std::uint32_t& weight : plan.weights) {
        weight = random.chance(400'000) ? 0U : static_cast<std::uint32_t>(random.spread(1, 100));
    }
    // What stops everything is rare, or nothing else gets far.
    for (const fault kind : {fault::server_crash, fault::server_power_cut, fault::server_shutdown,
                             fault::mandate_lapse}) {
        std::uint32_t& weight = plan.weights[static_cast<std::size_t>(kind)];
        weight = weight == 0 ? 0 : 1 + weight / 8;
    }
    plan.drops_heal = random.chance(500'000);
}

void draw_transport(swarm& plan, random_source& random) {
    plan.over = random.chance(400'000) ? transport::records : transport::plain;
    plan.record_cuts = perhaps(random, 500'000);
    plan.short_reads = static_cast<per_million>(random.spread(50'000, 800'000));
    plan.read_ahead = random.chance(500'000);
    if (plan.over == transport::records) {
        // A record is longer than what it holds, and must get through a cramped buffer in time.
        plan.send_buffer += 16;
        plan.receive_buffer += 16;
        // Only these send so much at once that something stays inside.
        plan.blunt_peers = std::max(plan.blunt_peers, 3);
    }
    plan.access_rules = plan.over == transport::records && random.chance(500'000);
    plan.permitted = static_cast<per_million>(random.between(300'000, 1'000'000));
    if (!plan.access_rules) {
        plan.weights[static_cast<std::size_t>(fault::access_change)] = 0;
    }
}

}  // namespace

swarm draw_swarm(random_source& random, swarm_kind kind) {
    swarm plan;
    if (kind == swarm_kind::drawn) {
        draw_leases(plan, random);
    }
    draw_network(plan, random);
    draw_faults(plan, random);
    plan.blunt_peers = random.chance(500'000) ? 0 : static_cast<int>(random.between(1, 3));
    if (kind == swarm_kind::drawn) {
        plan.locks = random.chance(300'000) ? 1 : 3;
    }
    plan.hold_max = random.spread(sim_time{2ms}, sim_time{plan.lease_max});
    plan.rest_max = random.spread(sim_time{1ms}, sim_time{plan.lease_max});
    plan.gives_up = perhaps(random, 300'000);
    plan.io_timeout = random.spread(sim_time{100ms}, sim_time{5s});
    plan.drift_at_limits = random.chance(300'000);
    plan.drift_max = random.chance(250'000) ? 0 : 100;
    plan.shards = static_cast<int>(random.below(3) == 0 ? 1 : random.between(2, 4));
    plan.accept_fails = perhaps(random, 100'000);
    plan.safety_steps = static_cast<std::uint64_t>(random.spread(500, 12'000));
    draw_transport(plan, random);
    // As many as can be there at once: some of dead clients have to be noticed first.
    plan.descriptors = 4 * (plan.clients + plan.blunt_peers);
    return plan;
}

void calm(swarm& plan) {
    plan.delay_min = 20us;
    plan.delay_max = 1ms;
    plan.spike = 0;
    plan.server_stops = 0;
    plan.client_stops = 0;
    plan.weights = {};
    plan.gives_up = 0;
    plan.connect_fails = 0;
    plan.accept_fails = 0;
    // Who vanished keeps a descriptor until its lease is over, and may stand in a long backlog: as
    // many leases as that takes are no fault of the server's.
    plan.descriptors *= 1000;
}

std::string_view to_string(fault kind) noexcept {
    switch (kind) {
        case fault::clog:
            return "connection clogged";
        case fault::stall_up:
            return "client's packets stalled";
        case fault::stall_down:
            return "server's packets stalled";
        case fault::drop_up:
            return "client's packets dropped for ever";
        case fault::drop_down:
            return "server's packets dropped for ever";
        case fault::drop_both:
            return "all packets dropped for ever";
        case fault::server_verdict:
            return "server's kernel gave up";
        case fault::client_verdict:
            return "client's kernel gave up";
        case fault::half_close:
            return "half-close";
        case fault::client_crash:
            return "client crashed";
        case fault::client_vanish:
            return "client's machine vanished";
        case fault::client_pause:
            return "client paused";
        case fault::server_pause:
            return "server paused";
        case fault::shard_pause:
            return "one shard paused";
        case fault::descriptors_taken:
            return "descriptors taken by others";
        case fault::server_crash:
            return "server crashed";
        case fault::server_power_cut:
            return "server's machine died";
        case fault::server_shutdown:
            return "server shut down";
        case fault::admin_list:
            return "operator lists";
        case fault::admin_release:
            return "operator releases";
        case fault::admin_release_by_token:
            return "operator releases by token";
        case fault::admin_kick:
            return "operator kicks a waiter";
        case fault::clog_round:
            return "connections clogged in turn";
        case fault::wall_step:
            return "wall clock stepped";
        case fault::tokens_refused:
            return "tokens refused";
        case fault::mandate_lapse:
            return "mandate lapsed";
        case fault::access_change:
            return "access rules changed";
    }
    return "?";
}

tally& tally::operator+=(const tally& more) {
    seeds += more.seeds;
    steps += more.steps;
    digest += more.digest;
    simulated += more.simulated;
    connections += more.connections;
    runs_with_shards += more.runs_with_shards;
    moves += more.moves;
    accept_pauses += more.accept_pauses;
    accept_failures += more.accept_failures;
    grants += more.grants;
    promotions += more.promotions;
    replies += more.replies;
    for (std::size_t at = 0; at < ends.size(); ++at) {
        ends[at] += more.ends[at];
    }
    beliefs_outlived += more.beliefs_outlived;
    writes += more.writes;
    stale_writes_refused += more.stale_writes_refused;
    quiet_claims += more.quiet_claims;
    losses += more.losses;
    losses_with_cause += more.losses_with_cause;
    listings += more.listings;
    releases_by_operator += more.releases_by_operator;
    stale_releases += more.stale_releases;
    kicks += more.kicks;
    operator_gave_up += more.operator_gave_up;
    refusals += more.refusals;
    denials += more.denials;
    sweeps_that_revoked += more.sweeps_that_revoked;
    retries += more.retries;
    grants_refused += more.grants_refused;
    sent_away += more.sent_away;
    server_stops += more.server_stops;
    client_stops += more.client_stops;
    spikes += more.spikes;
    short_writes += more.short_writes;
    resets += more.resets;
    records_opened += more.records_opened;
    records_half_sent += more.records_half_sent;
    reads_held_back += more.reads_held_back;
    alerts_read += more.alerts_read;
    runs_over_records += more.runs_over_records;
    for (std::size_t at = 0; at < faults.size(); ++at) {
        faults[at] += more.faults[at];
    }
    return *this;
}

}  // namespace monolock::simulation
