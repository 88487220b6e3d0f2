#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "posix/descriptor.hpp"
#include "server/accept_pace.hpp"
#include "server/cache_line.hpp"
#include "server/connection_socket.hpp"
#include "server/descriptor_budget.hpp"
#include "server/logger.hpp"
#include "server/peer_address.hpp"
#include "server/shard_loop.hpp"

namespace monolock::server {

// One shard's share of a listening socket. All shards wait on the same socket, each through its own
// duplicate of the descriptor; a connection wakes one that sleeps, and who is awake takes what
// there is. It outlives every error: when descriptors run out it waits and tries again, without
// spinning (docs/protocol.md). Used by the loop's thread alone.
class acceptor final : public readiness_handler {
public:
    // Called with each connection. It has no slot in the budget if it was in the backlog when the
    // acceptor stopped and there was none to be had: then it must be closed before returning.
    using handler = std::function<void(loose_connection, const peer_address&)>;

    // What the acceptors of all shards share.
    struct surroundings {
        descriptor_budget budget;
        log_gate trouble;                      // one line for all of them together
        std::atomic<std::uint64_t> errors{0};  // accepts that failed, for whatever reason
        // Somebody may stand in the backlog for want of a slot. Read at the end of each turn, and
        // written at the limit only.
        alignas(cache_line_bytes) std::atomic<bool> slot_wanted{false};
    };

    // `listening` is a non-blocking listening socket. The surroundings, the log and whatever the
    // handler uses must outlive the acceptor.
    acceptor(shard_loop& on, posix::descriptor listening, surroundings& around, logger& log,
             handler on_connection);

    // If the system refuses to watch the socket, that is said in the log and tried again later.
    void start();

    // Takes what already waits in the backlog, then closes the descriptor.
    void stop();

private:
    // What an attempt says about the next one.
    enum class outcome { go_on, nothing_waits, try_later };

    void on_readable() override;
    void on_writable() override {}  // never awaited

    [[nodiscard]] bool listen_again();
    void stop_watching() noexcept;
    void pause();
    void resume();
    void use_what_came_back();
    [[nodiscard]] outcome accept_one();
    [[nodiscard]] outcome outcome_of_error(int error);
    [[nodiscard]] outcome try_later(std::string_view why);

    shard_loop* loop_;
    posix::descriptor listening_;
    readiness_set::watch_ptr watch_;  // null: not started, in a pause, or stopped
    shard_loop::timer retry_;
    shard_loop::turn_end turn_end_;
    surroundings* around_;
    logger* log_;
    handler on_connection_;
    accept_pace pace_;
    bool stopping_ = false;
};

}  // namespace monolock::server
