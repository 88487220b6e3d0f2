#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/session_port.hpp"
#include "tls/channel.hpp"

namespace monolock::server {

// What connections are secured with, and how many times it was replaced before.
struct tls_setting {
    tls::context context;  // null: connections are plain
    std::uint64_t generation = 0;
};

// TLS on one connection of the server, with its verdicts sorted as the engine wants them. What it
// holds of decrypted bytes moves with it from shard to shard.
class secure_stream {
public:
    // `descriptor` must stay open for as long as the stream is used. Throws std::bad_alloc.
    secure_stream(const tls_setting& with, int descriptor)
        : channel_{with.context, tls::role::server, descriptor}, generation_{with.generation} {}

    // One step; see tls::channel.
    [[nodiscard]] tls::status handshake() noexcept { return channel_.handshake(); }
    [[nodiscard]] std::string failure() const { return channel_.failure(); }

    // Nothing means that socket and buffers are empty (docs/protocol.md, "Leases").
    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept;
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept;

    // Whether a receive may find bytes although the socket will not become readable.
    [[nodiscard]] bool holds_input() const noexcept { return channel_.holds_input(); }
    // See tls::channel::last_socket_read.
    [[nodiscard]] tls::channel::socket_read last_socket_read() const noexcept {
        return channel_.last_socket_read();
    }
    // TLS may have to send before it can receive, and the other way round.
    [[nodiscard]] bool receive_wants_write() const noexcept { return receive_wants_write_; }
    [[nodiscard]] bool send_wants_read() const noexcept { return send_wants_read_; }
    // A fatal alert was sent, and needs time to arrive like an ERROR.
    [[nodiscard]] bool owes_alert() const noexcept { return owes_alert_; }

    // See tls::channel::send_close_notify.
    void send_close_notify() noexcept { channel_.send_close_notify(); }

    // The identity of the verified client, empty if it was not asked for a certificate.
    [[nodiscard]] std::string identity() const;
    // Says whether `newest` would accept the client too, and if so takes its generation.
    [[nodiscard]] bool is_accepted_by(const tls_setting& newest);

private:
    // Whether the connection ended by the peer's word; else it is silence. Notes what is owed.
    [[nodiscard]] bool ended_by_peer(tls::status end) noexcept;

    tls::channel channel_;
    std::uint64_t generation_;
    bool receive_wants_write_ = false;
    bool send_wants_read_ = false;
    bool owes_alert_ = false;
};

}  // namespace monolock::server
