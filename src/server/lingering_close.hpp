#pragma once

#include <cstddef>

#include "server/connection_socket.hpp"
#include "server/deadline_list.hpp"

namespace monolock::server {

// The end of a connection whose last frame was an ERROR. A socket closed with unread input makes
// the kernel send a reset, which can destroy the ERROR on its way; so sending is shut down, what
// still comes is read and thrown away, and only the peer's end, too many bytes or the deadline in
// the shard's list close it. It keeps nobody waiting: the session ended before it began.
class lingering_close final : public deadline_entry, public readiness_handler {
public:
    // How much is thrown away at the most.
    static constexpr std::size_t discard_bytes_max = std::size_t{4} << 20U;

    explicit lingering_close(connection_socket&& socket) : socket_{std::move(socket)} {}

    // Shuts down sending. Says whether the peer's end was already there: then it is closed.
    [[nodiscard]] bool finish_at_once();
    // Waits for the peer's end. Calls nothing back; the entry leaves its list when it is closed.
    void wait() { socket_.await_readable(*this); }
    void close() noexcept;

private:
    void on_readable() override;
    void on_writable() override {}  // never awaited

    // Whether the connection is over, one way or the other.
    [[nodiscard]] bool discard_input();

    connection_socket socket_;
    std::size_t discarded_ = 0;
};

}  // namespace monolock::server
