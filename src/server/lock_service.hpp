#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/listener.hpp"
#include "server/loop.hpp"
#include "server/shard.hpp"

namespace monolock::server {

// Has every shard take that step, and calls back on the control loop when all have called back.
// &shard::ask is a step too: when all have been asked, what was posted to them before is done.
void on_every_shard(loop& control, const shard_surroundings& around,
                    void (shard::*step)(shard::callback), shard::callback then);

// The port that clients connect to and the sessions behind it, over all shards: opened and closed
// as a whole, by the control loop. A server by itself opens it once; one of several does so
// whenever it becomes active.
class lock_service {
public:
    using callback = std::function<void()>;

    // A shard's part in the first step of closing is done within a turn; more than this it gets
    // only if it has stalled.
    static constexpr std::chrono::seconds first_step_time_max{1};

    // What closing came to.
    enum class outcome {
        all_ended,     // no session is left
        some_stalled,  // a shard did not answer in time: its clients were told nothing
    };
    using closing_callback = std::function<void(outcome)>;

    // Both must outlive this.
    lock_service(loop& on, shard_surroundings& around) : around_{&around}, loop_{&on}, timer_{on} {}

    // Every shard accepts from these sockets. It must be closed: never opened, or closed and called
    // back.
    void open(listener port);

    // All shards stop granting before the first session ends, so that nobody is promoted into a
    // server that is going away; then every session gets ERROR 0x01. `closed` is called on the
    // control loop when all of them are gone, or, with a patience, when the shards had that much
    // time after the first step: for one that has stalled nobody waits longer. Closing what closes
    // already, `closed` is called as well, and the patience counts anew; what is closed calls back
    // at once, later. Connections may linger on, for peers that are slow to hear of it; what is
    // closed can be opened again meanwhile.
    void close(std::optional<core::nanoseconds> patience, closing_callback closed);

    // Calls back on the control loop when no connection is left, or when the patience is over. It
    // must be closed, and is not opened again.
    void await_last_connection(core::nanoseconds patience, callback gone);

    // Of the port, separated by commas; empty while there is none.
    [[nodiscard]] std::string addresses() const { return port_ ? port_->addresses() : ""; }
    [[nodiscard]] const std::vector<listening_socket>& sockets() const noexcept;

    // A Unix socket's; for an exit without ceremony.
    void remove_file() noexcept {
        if (port_) {
            port_->remove_file();
        }
    }

private:
    enum class stage { closed, open, stopping_grants, ending_sessions };

    // Posts `step` to every shard, and goes on with `then` on the control loop when all have called
    // back, or when the time is over.
    void on_all_shards(void (shard::*step)(shard::callback),
                       std::optional<core::nanoseconds> patience, closing_callback then);
    void go_on_after(core::nanoseconds patience, closing_callback then);
    void end_sessions();
    void finish(outcome how);

    shard_surroundings* around_;
    loop* loop_;
    loop_timer timer_;
    std::optional<listener> port_;
    stage stage_ = stage::closed;
    std::uint64_t step_ = 0;  // what a late shard calls back for is past
    std::optional<core::nanoseconds> patience_;
    std::vector<closing_callback> closed_;
};

}  // namespace monolock::server
