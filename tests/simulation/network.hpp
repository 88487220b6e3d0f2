#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "simulation/context.hpp"

namespace monolock::simulation {

enum class side : std::uint8_t { client, server };
[[nodiscard]] constexpr side other(side of) noexcept {
    return of == side::client ? side::server : side::client;
}

// What a system call on a socket says, or a layer above it. eof, reset and alerted are the peer's
// word, timed_out is a verdict of the local kernel.
enum class io_status : std::uint8_t {
    done,
    would_block,
    eof,
    reset,
    timed_out,
    alerted,     // (records) the peer said that it gives up
    unreadable,  // (records) what came cannot be opened; an alert says so
};
struct io_result {
    io_status status = io_status::would_block;
    std::size_t count = 0;
};

class connection;

// Whoever holds the descriptor of one end.
class socket_owner {
public:
    virtual ~socket_owner() = default;
    // The end may have become readable or writable. Called from events only, never from within one
    // of the owner's own calls.
    virtual void on_ready(connection& link) = 0;
};

// One TCP connection, both kernels and the network between them. Within one direction the order of
// bytes holds, FIN comes after the last byte, and what is lost on the way is sent again until it
// arrives or somebody gives up. FIN and RST come only from an end that was closed or whose machine
// started anew:
//  - close() with unread input sends RST, and so does input that arrives at a closed end;
//  - RST may overtake bytes on their way, which are then lost, and it may destroy bytes that
//  arrived
//    and have not been read (one kernel does this, another does not);
//  - a RST that is lost is not sent again.
// An error is reported once; after it a read finds the end and a write fails as if reset, as Linux
// does it.
class connection {
public:
    struct arrived_byte {
        std::byte value{};
        sim_time at{0};
    };

    connection(context& world, std::uint32_t id);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() = default;

    [[nodiscard]] std::uint32_t id() const noexcept { return id_; }

    // System calls of the process that holds the end.
    void own(side end, socket_owner* owner) noexcept { at(end).owner = owner; }
    [[nodiscard]] io_result read(side end, std::span<std::byte> into);
    [[nodiscard]] io_result write(side end, std::span<const std::byte> bytes);
    bool shut_down_sending(side end);  // false if that was no news
    void close(side end);              // also what the kernel does when the process dies
    void abort(side end);              // close with RST whatever was read
    [[nodiscard]] bool readable(side end) const noexcept;
    [[nodiscard]] bool writable(side end) const noexcept;

    // Faults, the first two of which say whether that changes anything for anybody. Packets that
    // `from` sends do not get through before `until`.
    bool stall(side from, sim_time until);
    // The kernel gives the connection up: ETIMEDOUT.
    bool give_up(side end);
    // The machine is gone without a word until `until`; a machine that comes back knows nothing of
    // the connection.
    void vanish(side end, sim_time until);
    // Faults stop: what was dropped for ever gets through again, if it may.
    void recover(bool drops_heal);

    // For the choice of faults and for the rules.
    [[nodiscard]] bool is_open(side end) const noexcept { return at(end).life == end_state::open; }
    // Whether its packets, of one direction or both, were lost or held up, or a kernel gave it up.
    [[nodiscard]] bool troubled() const noexcept { return troubled_; }
    [[nodiscard]] bool stalled(side from) const noexcept;
    [[nodiscard]] std::size_t unread(side end) const noexcept { return pipe_to(end).inbox.size(); }
    [[nodiscard]] const arrived_byte& unread_byte(side end, std::size_t index) const {
        return pipe_to(end).inbox[index];
    }
    // When the first unread byte arrived in the socket of `end`, never if there is none.
    [[nodiscard]] sim_time oldest_unread(side end) const noexcept;
    // When the last byte that `end` has read had arrived in its socket.
    [[nodiscard]] sim_time last_read_arrived(side end) const noexcept {
        return pipe_to(end).last_read_arrived;
    }

private:
    enum class end_state : std::uint8_t {
        open,
        closed,  // by its process; the kernel still sends what was written, and FIN
        dead,    // the kernel knows nothing of it and answers with RST
    };
    enum class trouble : std::uint8_t { none, reset, timed_out, reported };

    struct end_point {
        socket_owner* owner = nullptr;
        end_state life = end_state::open;
        trouble error = trouble::none;
    };
    struct segment {
        sim_time arrives{0};
        std::size_t count = 0;
    };
    // From one end to the other. Empty deques cost memory, which a short run does not mind.
    struct pipe {
        std::deque<std::byte> under_way;
        std::deque<segment> segments;    // of under_way
        sim_time last_arrival{0};        // of what has been sent so far
        std::size_t unacknowledged = 0;  // arrived, and the sender has not heard so
        sim_time stalled_until{0};
        sim_time fin_arrives = never;
        bool fin_sent = false;
        bool fin_arrived = false;
        bool cut = false;  // nothing more arrives
        std::deque<arrived_byte> inbox;
        sim_time last_read_arrived{0};
    };

    [[nodiscard]] end_point& at(side end) noexcept { return ends_[static_cast<std::size_t>(end)]; }
    [[nodiscard]] const end_point& at(side end) const noexcept {
        return ends_[static_cast<std::size_t>(end)];
    }
    [[nodiscard]] pipe& pipe_from(side end) noexcept {
        return pipes_[static_cast<std::size_t>(end)];
    }
    [[nodiscard]] const pipe& pipe_from(side end) const noexcept {
        return pipes_[static_cast<std::size_t>(end)];
    }
    [[nodiscard]] pipe& pipe_to(side end) noexcept { return pipe_from(other(end)); }
    [[nodiscard]] const pipe& pipe_to(side end) const noexcept { return pipe_from(other(end)); }

    [[nodiscard]] sim_time draw_delay();
    [[nodiscard]] std::size_t room(side from) const noexcept;
    [[nodiscard]] io_result take_error(side end) noexcept;
    void launch(side from, std::size_t count);
    void deliver(side from);
    bool deliver_segment(side from);
    void send_fin(side from);
    void send_reset(side from);
    void take_reset(side end);
    void resume(side from);
    void forget_outgoing(side from);
    void tell(side end);

    context* world_;
    std::uint32_t id_;
    std::array<end_point, 2> ends_;
    std::array<pipe, 2> pipes_;  // by the sending end
    bool troubled_ = false;
};

}  // namespace monolock::simulation
