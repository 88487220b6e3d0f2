#pragma once

#include <string>
#include <utility>

#include "core/session_port.hpp"
#include "server/connection_socket.hpp"
#include "server/peer_address.hpp"

namespace monolock::server {

class socket_session;

// What a session needs of its shard.
class session_owner {
public:
    virtual ~session_owner() = default;
    virtual void on_readable(socket_session& who) = 0;
    virtual void on_writable(socket_session& who) = 0;
    // The session is over; its connection is to linger.
    virtual void on_linger(connection_socket&& socket) = 0;
};

// A session over a socket: the engine's port, and nothing decided here. Kept alive by the shard's
// engine from admit() to retire(), and by each wait under way.
class socket_session final : public core::connected_session, public readiness_handler {
public:
    socket_session(core::session_id id, connection_socket&& socket, const peer_address& peer,
                   std::string&& identity, session_owner& owner)
        : connected_session{id},
          socket_{std::move(socket)},
          owner_{&owner},
          identity_{std::move(identity)},
          peer_{peer} {}

    [[nodiscard]] const peer_address& peer() const noexcept { return peer_; }
    // Of the verified client; empty without mutual TLS.
    [[nodiscard]] const std::string& identity() const noexcept { return identity_; }

    // The reference that the engine holds; given back by retire().
    void hold_for_engine() noexcept { intrusive_ptr_add_ref(this); }

    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept override;
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept override;
    void await_readable() override { socket_.await_readable(*this); }
    void await_writable() override { socket_.await_writable(*this); }
    void drop_connection() noexcept override;
    void retire(core::closing how) noexcept override;

private:
    // readiness_handler. A wait may outlast the session, whose socket then lingers elsewhere: the
    // engine hears of no session that it has retired.
    void on_readable() override {
        if (socket_.is_open()) {
            owner_->on_readable(*this);
        }
    }
    void on_writable() override {
        if (socket_.is_open()) {
            owner_->on_writable(*this);
        }
    }

    connection_socket socket_;
    session_owner* owner_;
    std::string identity_;
    peer_address peer_;
};

}  // namespace monolock::server
