#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/session_engine.hpp"
#include "protocol/frames.hpp"
#include "simulation/network.hpp"
#include "simulation/rules.hpp"
#include "simulation/server_shard.hpp"
#include "simulation/stream.hpp"

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
    // The last one before the engine's last call on this connection: what it judges a lease with.
    nanoseconds read_before{0};
    sim_time read_before_real{0};
    // A reading of the moment when the shard of its lock had it.
    nanoseconds came_home{0};
    // Since when the frame waits that is the next to be out.
    [[nodiscard]] nanoseconds blocked_at() const noexcept {
        return held_.empty() ? nanoseconds{0} : held_.front().since;
    }
    // The reading that follows a short write.
    void blocked_since(nanoseconds reading) noexcept { held_.back().since = reading; }
    // A fact is stated whose frame was offered to the connection, or put behind those held back.
    void frame_stated(std::size_t bytes, nanoseconds reading);
    bool dropped = false;

private:
    // Frames that the connection did not take, in parts that were held back at one time.
    struct held_back {
        std::size_t bytes = 0;
        nanoseconds since{0};
    };

    void note_reading() noexcept;
    void offered(std::size_t bytes, std::size_t taken, bool were_held);

    guest* host_;
    std::deque<held_back> held_;
    std::size_t offered_ = 0;  // bytes of frames, and stated by facts
    std::size_t stated_ = 0;
};

// A connection at the server, from accept to close.
class guest final : public socket_owner {
public:
    enum class phase : std::uint8_t { handshake, moving, session, lingering, gone };

    guest(server_shard& shard, connection& link, descriptor_slots::slot slot);

    void on_ready(connection& link) override;
    // Its turn: the socket became ready, or a time ran out.
    void serve();
    // The move to the shard of its lock is done.
    void comes_home(server_shard& home);
    // An ERROR before admission, or after it by the engine; then the lingering close.
    void refuse(const protocol::malformed& why);
    void refuse(protocol::error_code code);
    void linger();
    void give_up();
    void drop() noexcept;
    void abort();
    void close();
    void enqueue();

    // Which has it now.
    [[nodiscard]] server_shard& shard() const noexcept { return *shard_; }
    [[nodiscard]] connection& link() const noexcept { return *link_; }
    [[nodiscard]] simulation::stream& stream() noexcept { return stream_; }
    [[nodiscard]] const simulation::stream& stream() const noexcept { return stream_; }
    [[nodiscard]] claim_record& record() const;

    phase at = phase::handshake;
    bool queued = false;
    bool wants_read = false;
    bool wants_write = false;
    bool input_held = false;  // the wait for input is over, whatever the socket says
    std::unique_ptr<claim_session> session;
    sim_time admitted_at{0};
    sim_time last_receive{0};

private:
    void serve_session();
    void read_acquire();
    void admit();
    [[nodiscard]] bool goes_on();
    void deny();
    void take_acquire(std::span<const std::byte> bytes, nanoseconds received_at);
    void discard();
    void time_out_in(nanoseconds limit);
    void time_runs_out(phase of);

    server_shard* shard_;
    connection* link_;
    simulation::stream stream_;
    descriptor_slots::slot slot_;
    protocol::acquire_decoder decoder_;
    protocol::acquire_request request_;
    core::name_hash hash_;
    std::vector<std::byte> rest_;
    nanoseconds received_at_{0};
    bool timed_out_ = false;
};

}  // namespace monolock::simulation
