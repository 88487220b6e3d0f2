#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace monolock::history {

// Nanoseconds of one clock that all processes of a machine share and that no pause of theirs stops:
// CLOCK_BOOTTIME there, simulated time in the simulator.
using instant = std::chrono::nanoseconds;
inline constexpr instant never = instant::max();

// One attempt of a client on one lock: number counts the attempts of its worker (a process).
struct claim_id {
    std::uint32_t worker = 0;
    std::uint32_t number = 0;
    friend auto operator<=>(const claim_id&, const claim_id&) = default;
};

// What happened. The side on which a time may be wrong is the one that accuses nobody: what a
// client does is noted before it does it, what it learns after it has learned it.
enum class kind : std::uint8_t {
    // Of a claim.
    ask,        // it is about to ask, with this lease
    waiting,    // it has seen that it is queued
    grant,      // it believes that it owns the lock, with this token, until then
    confirmed,  // … until then; only ever later
    act,        // it did what only an owner may do; noted with a reading before it asked itself
    loss,       // it was refused, or stopped believing, for this reason
    end,        // it is about to close: a release, or a waiter that leaves
    closed,     // and has closed; need not be told

    // Of a worker and the way between it and the server, noted by whoever injects the faults.
    near,        // nothing delays, loses or orders anew what goes between it and the server
    paused,      // it is about to be stopped (SIGSTOP) ...
    resumed,     // ... and does run again
    killed,      // it is about to be ended (SIGKILL); its kernel closes its connections
    silent,      // from here on nothing that it sends reaches the server, no FIN either ...
    heard,       // ... until here
    resetting,   // from here on connections of it may break without its knowledge ...
    reset_over,  // ... until here

    // Of a lock.
    forcing,      // an operator is about to end its owner or a waiter ...
    forced_over,  // ... and has done so

    // Of the server.
    server_down,     // it is about to end
    server_started,  // it has ended and another one is about to be started; whether the wall clock
                     // has not gone back meanwhile
    server_paused,   // it is about to be stopped
    server_serves,   // it does run again, or for the first time

    // Of the run.
    calm,    // faults and their consequences are over
    finish,  // nobody is waited for any more
};
inline constexpr std::size_t kinds = 24;

// Why a claim failed or was lost.
enum class reason : std::uint8_t {
    none,
    unreachable,    // no connection came about
    silence,        // no answer within 0.8 x lease, or to a connect
    closed,         // end of file, reset, or what else breaks a connection
    shutdown,       // ERROR 0x01
    administrator,  // ERROR 0x02
    refused,        // an ERROR that says the client is wrong
    violation,      // the server sent what the protocol does not allow
};
inline constexpr std::size_t reasons = 8;

[[nodiscard]] std::string_view to_string(kind what) noexcept;
[[nodiscard]] std::string_view to_string(reason why) noexcept;

// Fields that its kind does not have are as they are here.
struct event {
    instant at{0};
    kind what = kind::finish;
    reason why = reason::none;     // loss
    bool wall_clock_right = true;  // server_started
    claim_id claim{};              // of a claim; of a worker: the worker
    std::uint32_t lock = 0;        // ask, forcing, forced_over: a number of the history's names
    std::uint64_t token = 0;       // grant
    instant until{0};              // grant, confirmed
    instant lease{0};              // ask
    friend bool operator==(const event&, const event&) = default;
};

// What a history is held to where the contract names no number.
struct settings {
    // From a close to the next grant, and what an expiry may be late. Zero: not checked.
    instant handover_max{0};
    instant silence_slack{0};
    // From calm, or the ask if that is later, to a grant. Zero: not checked.
    instant served_within{0};
    // The clocks of clients and server run up to ten per cent wrong each, so that a lease is worth
    // nothing beyond what its client may use of it.
    bool clocks_drift = false;
    // All that operators do and each end of the server is noted.
    bool causes_noted = false;
    // All that breaks connections, stops processes or cuts them off is noted, and who is near.
    bool faults_noted = false;
    friend bool operator==(const settings&, const settings&) = default;
};

}  // namespace monolock::history
