#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulation/random.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation {

// What the world does to its inhabitants from outside.
enum class fault : std::uint8_t {
    clog,        // one connection stalls both ways, and goes on later
    stall_up,    // packets from the client stop getting through for a while
    stall_down,  // packets from the server do
    drop_up,     // packets from the client are lost for ever, silently
    drop_down,
    drop_both,
    server_verdict,  // the server's kernel gives a connection up (ETIMEDOUT): silence
    client_verdict,  // the client's kernel does
    half_close,      // the client's side sends FIN but goes on reading
    client_crash,    // the process dies, its kernel closes the connection
    client_vanish,   // the machine is gone, nobody closes anything
    client_pause,
    server_pause,
    shard_pause,             // one thread of the server gets no processor
    descriptors_taken,       // nearly none is left for connections
    server_crash,            // the process dies; a new one starts later
    server_power_cut,        // the machine dies with it
    server_shutdown,         // SIGTERM: ERROR 0x01 to everybody, then a new process
    admin_list,              // an operator looks at all locks
    admin_release,           // ends an owner, whoever that is
    admin_release_by_token,  // or only the one that was seen
    admin_kick,              // ends a waiter
    clog_round,              // one connection after the other stalls, until all have
    wall_step,               // the server's wall clock jumps
    tokens_refused,          // for a while, to all claims or to those of long leases
    mandate_lapse,           // of one of several servers: it may not act for a while
    access_change,           // other rules of who may claim what, and SIGHUP
};
inline constexpr std::size_t fault_kinds = 27;
[[nodiscard]] std::string_view to_string(fault kind) noexcept;

// What stands between the processes and their sockets.
enum class transport : std::uint8_t {
    plain,
    records,  // a record layer as TLS has it: record_layer.hpp
};

// One run's weather, drawn from its seed: how slow, how lossy, how unlucky, and which faults exist
// in it at all. Swarm testing: a run that lacks some faults reaches states that the average of all
// faults never reaches.
struct swarm {
    int clients = 8;
    int blunt_peers = 0;  // peers that speak the protocol without the client library
    int locks = 3;
    int shards = 1;
    int descriptors = 0;           // connections that the server may hold
    per_million accept_fails = 0;  // that the system has none for the next

    milliseconds lease_min{50};
    milliseconds lease_max{10'000};

    // Of one packet, one way; now and then one is as slow as spike_max.
    sim_time delay_min{0};
    sim_time delay_max{0};
    per_million spike = 0;
    sim_time spike_max{0};
    per_million split = 0;  // that the next segment is a piece only

    // Of each side of each connection, in bytes: small ones make writes short.
    std::size_t send_buffer = 0;
    std::size_t receive_buffer = 0;

    transport over = transport::plain;
    // Of a record layer.
    per_million record_cuts = 0;  // that what is written together becomes several records
    per_million short_reads = 0;  // that a read returns less than there is
    bool read_ahead = false;      // a read takes from the socket all that is there
    // Access rules exist, and may change. Only over records: they need an identity.
    bool access_rules = false;
    per_million permitted = 0;  // of all pairs of client and lock

    // That a process is stopped at one of the points between its system calls.
    per_million server_stops = 0;
    per_million client_stops = 0;
    sim_time stop_max{0};

    sim_time fault_gap{0};  // about that long from one fault to the next
    std::array<std::uint32_t, fault_kinds> weights{};

    sim_time hold_max{0};           // how long work takes
    sim_time rest_max{0};           // between one claim and the next
    per_million gives_up = 0;       // that a waiter stops waiting before its time
    per_million connect_fails = 0;  // that a connection attempt gets no answer

    nanoseconds io_timeout{0};
    std::int64_t drift_max = 0;    // in thousandths, either way
    bool drift_at_limits = false;  // every clock is as wrong as it may be

    std::uint64_t safety_steps = 0;  // how long faults go on
    bool drops_heal = false;         // once faults stop
};

enum class swarm_kind : std::uint8_t {
    drawn,     // all of it from the seed
    standard,  // 8 clients, 3 locks, leases of 50 ms to 10 s in each run; the rest from the seed
};

// What is to be run.
struct run_request {
    std::uint64_t seed = 1;
    swarm_kind kind = swarm_kind::drawn;
    bool trace = false;
    const char* program = "simulate";  // that runs it
};

[[nodiscard]] swarm draw_swarm(random_source& random, swarm_kind kind);

// Once faults stop: a good network and no chance left in it.
void calm(swarm& plan);

// What happened, over all seeds of a thread; sums, so that the order of the seeds does not matter.
struct tally {
    std::uint64_t seeds = 0;
    std::uint64_t steps = 0;
    std::uint64_t digest = 0;  // of all journals, whatever their order
    sim_time simulated{0};
    std::uint64_t connections = 0;
    std::uint64_t runs_with_shards = 0;  // with several
    std::uint64_t moves = 0;             // of claims between shards
    std::uint64_t accept_pauses = 0;     // for want of a descriptor
    std::uint64_t accept_failures = 0;
    std::uint64_t grants = 0;
    std::uint64_t promotions = 0;
    std::uint64_t replies = 0;
    std::array<std::uint64_t, 4> ends{};  // by end_reason
    std::uint64_t beliefs_outlived = 0;   // steps at which an announced loser still believed
    std::uint64_t writes = 0;
    std::uint64_t stale_writes_refused = 0;
    std::uint64_t quiet_claims = 0;       // begun when no fault had left a trace
    std::uint64_t losses = 0;             // claims that a client gave up as lost
    std::uint64_t losses_with_cause = 0;  // as it was told of an operator or of the server's end
    std::uint64_t listings = 0;
    std::uint64_t releases_by_operator = 0;
    std::uint64_t stale_releases = 0;  // refused: another owner by now
    std::uint64_t kicks = 0;
    std::uint64_t operator_gave_up = 0;
    std::uint64_t refusals = 0;  // ERRORs
    std::uint64_t denials = 0;   // of them by the access rules
    std::uint64_t sweeps_that_revoked = 0;
    std::uint64_t retries = 0;         // of a claim that was not granted
    std::uint64_t grants_refused = 0;  // by the source of tokens
    std::uint64_t sent_away = 0;       // sessions, for want of a mandate
    std::uint64_t server_stops = 0;
    std::uint64_t client_stops = 0;
    std::uint64_t spikes = 0;
    std::uint64_t short_writes = 0;
    std::uint64_t resets = 0;
    std::uint64_t records_opened = 0;
    std::uint64_t records_half_sent = 0;  // for a while
    std::uint64_t reads_held_back = 0;    // that left bytes inside the layer
    std::uint64_t alerts_read = 0;        // fatal ones
    std::uint64_t runs_over_records = 0;
    std::array<std::uint64_t, fault_kinds> faults{};

    tally& operator+=(const tally& more);
};

}  // namespace monolock::simulation
