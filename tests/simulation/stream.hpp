#pragma once

#include <optional>
#include <span>

#include "simulation/network.hpp"
#include "simulation/record_layer.hpp"

namespace monolock::simulation {

// What a process has of its connection: the socket, and between the two a record layer if the run
// has one. Modelled on src/server/connection_socket.hpp.
class stream {
public:
    stream(context& world, connection& link, side end);

    [[nodiscard]] io_result read(std::span<std::byte> into);
    [[nodiscard]] io_result write(std::span<const std::byte> bytes);

    // Whether input has left the socket and waits inside: no readiness of the socket tells of it.
    [[nodiscard]] bool holds_input() const noexcept { return records_ && records_->holds_input(); }
    [[nodiscard]] bool socket_readable() const noexcept { return link_->readable(end_); }
    [[nodiscard]] bool socket_writable() const noexcept { return link_->writable(end_); }

    // Says that no more will be sent, and goes on reading.
    void shut_down_sending();
    // The same, and from here on input is what the socket has, for whoever discards it.
    void linger();
    void close();

    [[nodiscard]] record_layer* records() noexcept { return records_ ? &*records_ : nullptr; }
    [[nodiscard]] const record_layer* records() const noexcept {
        return records_ ? &*records_ : nullptr;
    }

    // For the rules; see record_layer and connection.
    [[nodiscard]] sim_time oldest_unread() const;
    [[nodiscard]] sim_time last_read_arrived() const noexcept;

private:
    void say_close_notify();

    connection* link_;
    side end_;
    std::optional<record_layer> records_;
};

}  // namespace monolock::simulation
