#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "load/sockets.hpp"
#include "load/timed_result.hpp"
#include "peers/account.hpp"

namespace monolock::bench::peers {

using clock = std::chrono::steady_clock;

// One client of a peer, over a connection (or two) of its own that its constructor made. All calls
// block, and throw measurement_error if the peer answers what it should not, or not within 10 s.
class client {
public:
    virtual ~client() = default;

    // Waits until the lock is its own.
    virtual void acquire(const std::string& name) = 0;
    // Gives back what acquire got and wakes whoever waits for it.
    virtual void hand_over() = 0;
    // Ends the claim as a program does that is done; the connection is of no use afterwards.
    virtual void finish() = 0;
    // Tells the peer that the owner lives; throws if the peer knows no such thing.
    virtual void keep_alive() = 0;
    // Stands in line and returns, so that one thread can hold many waiters. The connection is of no
    // use for anything else afterwards.
    virtual void stand_in_line(const std::string& name) = 0;

    client() = default;
    client(const client&) = delete;
    client& operator=(const client&) = delete;
};

// How a peer's clients are made; called from several threads.
using client_maker = std::unique_ptr<client> (*)(const std::string& host, int port);

// A driver's main: reads the command line, which is that of the load generator (modes connect,
// heartbeat, handover and memory --waiters) with --cgroup besides, and prints the same JSON.
int run_driver(int argc, char** argv, client_maker make);

}  // namespace monolock::bench::peers
