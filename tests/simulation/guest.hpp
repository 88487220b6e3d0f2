#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/session_engine.hpp"
#include "protocol/frames.hpp"
#include "simulation/network.hpp"
#include "simulation/rules.hpp"
#include "simulation/server_process.hpp"

namespace monolock::simulation {

// The engine's port to one connection.
class claim_session final : public core::connected_session {
public:
    explicit claim_session(guest& host);

    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept override;
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept override;
    void await_readable() override;
    void await_writable() override;
    void drop_connection() noexcept override;
    void retire(core::closing how) noexcept override;

    // Readings of the server's clock, as the engine should have taken them.
    nanoseconds heard_at{0};
    nanoseconds blocked_at{0};             // since when the frame waits that is the next to be out
    std::optional<nanoseconds> pushed_at;  // into a backlog, behind all that was held back before
    bool dropped = false;

private:
    guest* host_;
};

// A connection at the server, from accept to close.
class guest final : public socket_owner {
public:
    enum class phase : std::uint8_t { handshake, moving, session, lingering, gone };

    guest(server_process& server, connection& link);

    void on_ready(connection& link) override;
    // Its turn: the socket became ready, or a time ran out.
    void serve();
    // The move to the shard of its lock is done.
    void admit();
    // An ERROR before admission, or after it by the engine; then the lingering close.
    void refuse(const protocol::malformed& why);
    void linger();
    void close();
    void enqueue();

    [[nodiscard]] server_process& server() const noexcept { return *server_; }
    [[nodiscard]] connection& link() const noexcept { return *link_; }
    [[nodiscard]] claim_record& record() const;

    phase at = phase::handshake;
    bool queued = false;
    bool wants_read = false;
    bool wants_write = false;
    std::unique_ptr<claim_session> session;
    sim_time admitted_at{0};

private:
    void read_acquire();
    void take_acquire(std::span<const std::byte> bytes, nanoseconds received_at);
    void serve_session();
    void discard();
    void time_out_in(nanoseconds limit);
    void time_runs_out(phase of);

    server_process* server_;
    connection* link_;
    protocol::acquire_decoder decoder_;
    protocol::acquire_request request_;
    std::vector<std::byte> rest_;
    nanoseconds received_at_{0};
    bool timed_out_ = false;
};

}  // namespace monolock::simulation
