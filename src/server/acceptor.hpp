#pragma once

#include <cstdint>
#include <functional>

#include "posix/descriptor.hpp"
#include "server/connection_socket.hpp"
#include "server/descriptor_budget.hpp"
#include "server/logger.hpp"
#include "server/loop.hpp"
#include "server/peer_address.hpp"

namespace monolock::server {

// One shard's share of a listening socket. All shards wait on the same socket, each through its own
// duplicate of the descriptor, and whoever comes first takes a few connections. It outlives every
// error: when descriptors run out it waits and tries again, without spinning (docs/protocol.md).
class acceptor {
public:
    using handler = std::function<void(loose_connection, const peer_address&)>;

    // `listening` is a non-blocking listening socket. The budget, the log and whatever the handler
    // uses must outlive the acceptor.
    acceptor(loop& on, posix::descriptor listening, descriptor_budget& budget, logger& log,
             handler on_connection);

    void start() { await(); }

    // Takes what already waits in the backlog, then closes the descriptor.
    void stop();

private:
    // What an attempt says about the next one.
    enum class outcome { accepted, nothing_waits, exhausted };

    void await();
    void turn();
    void pause();
    [[nodiscard]] outcome accept_one();
    [[nodiscard]] outcome out_of_descriptors(const char* why);

    watched_descriptor listening_;
    loop_timer retry_;
    descriptor_budget* budget_;
    logger* log_;
    handler on_connection_;
    std::uint64_t errors_ = 0;
};

}  // namespace monolock::server
