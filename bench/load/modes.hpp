#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "load/connection.hpp"
#include "load/latencies.hpp"
#include "load/server_process.hpp"
#include "load/timed_result.hpp"

namespace monolock::bench {

using clock = std::chrono::steady_clock;

// Long enough that no session needs a heartbeat to survive any of the runs.
inline constexpr std::uint32_t lease_ms = 3'600'000;

// What every mode needs to know.
struct target {
    endpoint server;
    server_process process{0};
    tls::context client;  // null: plain
};

// Heartbeats over `connections` sessions, each with a lock of its own, taken in turn.
struct heartbeat_options {
    std::size_t connections = 1000;
    // Closed loop: so many heartbeats in flight at any time, on different connections.
    std::size_t outstanding = 64;
    // If not zero: so many heartbeats a second, whatever the answers do; the latency then counts
    // from the moment at which the heartbeat was due.
    std::size_t rate = 0;
    // The server has more to do than this and never comes to rest: its CPU time is not read.
    bool latency_only = false;
    std::chrono::nanoseconds warm_up{std::chrono::milliseconds{300}};
    std::chrono::nanoseconds duration{std::chrono::seconds{2}};
};
[[nodiscard]] timed_result run_heartbeat(const target& to, const heartbeat_options& options);

// Connect (over TLS with the handshake), ACQUIRE a new name, read ACQUIRED, close. The latency is
// that of all but the last step.
struct connect_options {
    // Closed loop: so many at a time.
    std::size_t concurrent = 1;
    // If not zero: so many a second, whatever the answers do (256 at a time at the most); the
    // latency then counts from the moment at which the connection was due.
    std::size_t rate = 0;
    std::chrono::nanoseconds warm_up{std::chrono::milliseconds{300}};
    std::chrono::nanoseconds duration{std::chrono::seconds{2}};
};
[[nodiscard]] timed_result run_connect(const target& to, const connect_options& options);

// The owner closes, the next of `waiters` has its ACQUIRED; the one that left queues up again
// before the next round, and the first so many rounds do not count. The latency runs from before
// the close to after the receive.
struct handover_options {
    std::size_t waiters = 64;
    std::size_t rounds = 5000;
};
[[nodiscard]] timed_result run_handover(const target& to, const handover_options& options);

// How attempts and sessions ended that their clients did not end: see attempt::ending.
struct endings {
    std::size_t refused = 0;
    std::size_t closed = 0;
    std::size_t told = 0;
    std::size_t broken = 0;
    std::size_t timed_out = 0;  // the client's patience

    [[nodiscard]] std::size_t total() const noexcept {
        return refused + closed + told + broken + timed_out;
    }
};

// Many clients of the library's kind, with a lock each: see crowd.
struct crowd_options {
    std::size_t clients = 1000;
    std::size_t first = 0;  // the serial of the first: several processes must not share names
    std::chrono::milliseconds lease{10'000};
    bool returns = false;  // who loses its lock claims it again
};
struct crowd_figures {
    clock::time_point since;
    std::size_t attempts = 0;
    endings failed;        // attempts that came to nothing
    endings lost;          // sessions that ended
    latencies grants;      // from the first attempt to ACQUIRED
    latencies heartbeats;  // from when they were due
    latencies lags;        // how late the generator itself was to send them
};

// Opens the sessions one after the other, then lets them beat. Prints an object on standard output
// when all are open, one for each line that standard input brings, about the time since the last,
// and one at its end or after `duration`.
void run_hold(const target& to, const crowd_options& options, std::chrono::nanoseconds duration);

// All clients connect at once. Prints an object when all have their lock, and again whenever all
// have it again after some lost it, until standard input ends; after `duration` without that it
// throws.
void run_storm(const target& to, const crowd_options& options, std::chrono::nanoseconds duration);

// In `queues` locks of an owner and `waiters` each, waiters leave the middle of their queues. At
// first one at a time, each followed by the heartbeat of a bystander, whose answer shows that the
// server is done with the leave if it has one thread: the latency is that of both. Then as many at
// once: the CPU time is that of these.
struct leave_options {
    std::size_t queues = 1;
    std::size_t waiters = 10;
    std::size_t leaves = 1000;  // each time; fewer if half of the waiters in the middle are fewer
};
struct leave_result {
    latencies latency;
    std::chrono::nanoseconds server_cpu{0};  // of as many leaves as there are latencies
};
[[nodiscard]] leave_result run_leave(const target& to, const leave_options& options);

// Sessions with a lock each send one more heartbeat, spread evenly over a time, and fall silent.
struct expire_options {
    std::size_t sessions = 1000;
    std::chrono::milliseconds lease{4000};
    std::chrono::nanoseconds spread{std::chrono::seconds{1}};
    // Each lock has a waiter, too, with a longer lease: an end is when it is granted the lock.
    bool heirs = false;
};
// How late the ends were. The server counts a lease from when it received the last heartbeat, which
// was after it was sent and before it was answered: so one bound is from either.
struct expire_result {
    latencies late_at_most;
    latencies late_at_least;
    std::size_t early = 0;  // ended although the lease had not passed since the heartbeat was sent
    std::chrono::nanoseconds server_cpu{0};
};
[[nodiscard]] expire_result run_expire(const target& to, const expire_options& options);

// Opens sessions up to each of the sizes (which ascend), each with a lock of its own or all but the
// first as waiters of one lock, and reads the server's resident memory at each size.
struct memory_options {
    std::vector<std::size_t> sizes{1000, 15000};
    bool waiters = false;
};
struct memory_sample {
    std::size_t sessions = 0;
    std::size_t resident_bytes = 0;
};
// The first sample is that of the server without sessions.
[[nodiscard]] std::vector<memory_sample> run_memory(const target& to,
                                                    const memory_options& options);

// A name as people choose them: a path and a number, 20 bytes.
[[nodiscard]] std::string lock_name(std::size_t serial);

// What TLS connections to the server negotiate; empty if they are plain. Makes one.
[[nodiscard]] std::string negotiated_with(const target& to);

// Connects and sends ACQUIRE; over TLS only when the handshake is done.
[[nodiscard]] connection claim(const target& to, std::size_t serial, const std::string& name);
// Connects, claims and reads the frame that must answer.
[[nodiscard]] connection own(const target& to, std::size_t serial, const std::string& name);
[[nodiscard]] connection queue_up(const target& to, std::size_t serial, const std::string& name);

}  // namespace monolock::bench
