#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulation/random.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation::failover {

using std::chrono::seconds;

// What the world does to its inhabitants from outside.
enum class fault : std::uint8_t {
    store_silent,    // no call to the store is answered for a while, by anybody
    store_refuses,   // each call fails at once
    store_slow,      // calls take about as long as they may
    cut_from_store,  // one server: neither requests nor answers get through
    deaf_to_store,   // its answers do not
    mute_to_store,   // its requests do not
    lease_revoked,   // by hand, the one under the key
    key_deleted,     // by hand
    key_touched,     // by hand: the same value is put again
    watch_breaks,
    watch_falls_silent,
    server_pause,  // nothing of it runs; then everything that waited is there at once
    server_crash,  // the process dies, its kernel resets the connections
    power_cut,     // the machine dies with it, and nobody is told
    server_shutdown,
    wall_step,        // a server's wall clock jumps, by hours perhaps
    client_cut,       // a connection carries nothing any more, silently
    clients_cut,      // all connections of one server
    clients_change,   // others come, with other leases
    force_release,    // an operator ends an owner, which may not hear of it
    burst,            // a server grants as many tokens as it may, or nearly, to others
    state_unreadable  // nobody who wins can read what `state` says, for a while
};
inline constexpr std::size_t fault_kinds = 22;
[[nodiscard]] std::string_view to_string(fault kind) noexcept;

// One run's weather, drawn from its seed; each run leaves some faults out.
struct swarm {
    int servers = 2;
    int clients = 4;
    int locks = 2;
    std::array<seconds, 3> ttl{};  // of each server, as asked for
    seconds ttl_min{1};            // that the store gives
    bool automatic = true;         // grant delay; else it is fixed_delay
    milliseconds fixed_delay{0};
    milliseconds covered_max{60'000};
    milliseconds lease_min{100};
    milliseconds lease_max{10'000};

    // Of a request or an answer, one way, between a server and the store.
    sim_time store_delay_max{0};
    per_million request_lost = 0;
    per_million answer_lost = 0;
    per_million request_late = 0;  // it is carried out long after it was given up
    sim_time late_max{0};
    per_million request_twice = 0;  // carried out twice; the second answer is the one that arrives
    // Of leases in the store.
    per_million lease_short = 0;      // that a lease ends early
    per_million lease_long = 0;       // or late
    std::int64_t lease_long_max = 1;  // times its TTL
    per_million kept_blindly = 0;     // that a keepalive is answered by a member that knows nothing
    sim_time watch_delay_max{0};

    sim_time client_delay_max{0};
    per_million error_lost = 0;  // that who is ended is not told
    sim_time hold_max{0};
    sim_time survey_delay_max{0};  // of what a server's thread and its shard tell each other

    per_million stops = 0;  // that a server is stopped between its clock and its receive
    sim_time pause_max{0};
    sim_time fault_gap{0};
    per_million in_a_row = 0;  // that a fault is followed by the next within a quarter of a TTL
    std::array<std::uint32_t, fault_kinds> weights{};

    std::int64_t drift_max = 0;  // in thousandths, either way
    bool drift_at_limits = false;
    sim_time safety_time{0};  // how long faults go on
};

[[nodiscard]] swarm draw_swarm(random_source& random);
// Once faults stop.
void calm(swarm& plan);

// What happened, over all seeds of a thread.
struct tally {
    std::uint64_t seeds = 0;
    std::uint64_t steps = 0;
    std::uint64_t digest = 0;
    sim_time simulated{0};
    std::uint64_t failovers = 0;     // times that a server opened
    std::uint64_t before_a_ttl = 0;  // of them earlier than a TTL after winning
    std::uint64_t at_once = 0;       // of them earlier than a quarter of a TTL
    std::uint64_t grants = 0;
    std::uint64_t answers = 0;
    std::uint64_t transactions = 0;  // of the chain, carried out
    std::uint64_t unanswered = 0;    // requests that were given up
    std::uint64_t applied_late = 0;  // carried out after that
    std::uint64_t recovered = 0;     // not done, but still mine
    std::uint64_t refused = 0;       // messages that were not answered, since the mandate was over
    std::array<std::uint64_t, 5> losses{};  // by coordination::loss
    std::uint64_t raises_awaited = 0;       // grants that waited for the ceiling
    std::uint64_t leases_awaited = 0;       // or for the record of leases
    std::uint64_t lowered = 0;              // times that the record of leases was lowered
    std::uint64_t beliefs_outlived = 0;     // owners that believed when their server lost its role
    std::uint64_t stops = 0;
    std::array<std::uint64_t, fault_kinds> faults{};

    tally& operator+=(const tally& more);
};

struct run_request {
    std::uint64_t seed = 1;
    bool trace = false;
};
// One run. Ends the program with a report if a rule is broken.
void run(const run_request& what, tally& totals);

}  // namespace monolock::simulation::failover
