#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "protocol/frames.hpp"
#include "server/claim_arrival.hpp"
#include "server/connection_socket.hpp"
#include "server/deadline_list.hpp"
#include "server/peer_address.hpp"

namespace monolock::server {

class handshake;

// What a handshake needs of its shard. Every call is the handshake's last: it has left the list of
// handshakes by then.
class handshake_owner {
public:
    virtual ~handshake_owner() = default;
    // The ACQUIRE is complete and valid. The connection is still with the shard's loop.
    virtual void on_claim(connection_socket&& socket, claim_arrival&& claim) = 0;
    // The bytes are refused; `seen` is what the last receive returned.
    virtual void on_refused(connection_socket&& socket, const peer_address& peer,
                            const protocol::malformed& refusal,
                            std::span<const std::byte> seen) = 0;
    // The peer broke TLS; an alert is on its way to it.
    virtual void on_linger(connection_socket&& socket) = 0;
};

// A connection from accept, or from the end of its TLS handshake, to the end of its ACQUIRE:
// CONNECTED in the protocol's words. It lives
// as long as it waits for bytes; its deadline, in the shard's list, bounds the arrival of the whole
// ACQUIRE, so that a byte at a time gains nothing.
class handshake final : public deadline_entry, public readiness_handler {
public:
    handshake(connection_socket&& socket, const peer_address& peer, std::string&& identity,
              handshake_owner& owner)
        : socket_{std::move(socket)}, peer_{peer}, identity_{std::move(identity)}, owner_{&owner} {}

    // Reads what is there, and waits for more.
    void start() { read(); }

    // Gives up without a word: the time is over.
    void close() noexcept;

    // Answers with an ERROR and ends, as on_refused.
    void refuse(protocol::error_code code);

private:
    void on_readable() override;
    void on_writable() override {}  // never awaited

    void read();
    void take(std::span<const std::byte> bytes);

    connection_socket socket_;
    protocol::acquire_decoder decoder_;
    peer_address peer_;
    std::string identity_;
    handshake_owner* owner_;
};

}  // namespace monolock::server
