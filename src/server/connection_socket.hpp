#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/session_port.hpp"
#include "posix/descriptor.hpp"
#include "server/descriptor_budget.hpp"
#include "server/readiness_set.hpp"
#include "server/secure_stream.hpp"

namespace monolock::server {

// A connection that no loop watches: on its way from one shard to another.
struct loose_connection {
    posix::descriptor descriptor;
    descriptor_budget::slot slot;
    std::unique_ptr<secure_stream> stream{};  // null: plain
    bool breaks_off = false;                  // a receive may end before all that is there
};

// One non-blocking call on a stream socket, with the kernel's verdicts sorted as the engine wants
// them: a reset or a broken pipe is the peer's word, every other error is silence.
[[nodiscard]] core::receive_result receive_from(int descriptor, std::span<std::byte> into) noexcept;
[[nodiscard]] core::send_result send_to(int descriptor, std::span<const std::byte> bytes) noexcept;

// A non-blocking stream socket watched by a loop, plain or with TLS on it. The set tells when it is
// ready; receive and send are called here, so that an idle connection costs no buffer
// (docs/decisions/0001). Used by the loop's thread alone.
class connection_socket {
public:
    // Not open afterwards, and the connection closed, if the system refuses to watch it (epoll has
    // a limit of its own).
    connection_socket(readiness_set& in, loose_connection connection);
    connection_socket(const connection_socket&) = delete;
    connection_socket(connection_socket&&) noexcept = default;
    connection_socket& operator=(const connection_socket&) = delete;
    connection_socket& operator=(connection_socket&&) noexcept = delete;
    ~connection_socket() = default;

    [[nodiscard]] bool is_open() const noexcept { return watch_ != nullptr; }

    // From now on the bytes of the connection are TLS; its handshake is the caller's to drive.
    void secure(const tls_setting& with) {
        stream_ = std::make_unique<secure_stream>(with, descriptor_.get());
    }
    // Null on a plain connection.
    [[nodiscard]] secure_stream* stream() const noexcept { return stream_.get(); }
    // A fatal TLS alert is on its way, and a close must not destroy it.
    [[nodiscard]] bool owes_alert() const noexcept { return stream_ && stream_->owes_alert(); }

    // One step; see tls::channel. Only once it is secured.
    [[nodiscard]] tls::status handshake() noexcept {
        const tls::status did = stream_->handshake();
        note_socket_read();
        return did;
    }
    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept {
        return stream_ ? receive_secured(into) : receive_plain(into);
    }
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept {
        return stream_ ? stream_->send(bytes) : send_to(descriptor_.get(), bytes);
    }
    // Whether the peer has said, as far as this turn knows, that it sends nothing more, or the
    // connection has failed. Its last bytes may still be there.
    [[nodiscard]] bool has_ended() const noexcept { return watch_->has_ended(); }
    // How many of the next bytes on the wire there are, at most as many as there is room for. They
    // stay where they are.
    [[nodiscard]] std::size_t peek(std::span<std::byte> into) noexcept;

    // Calls who.on_readable() once, in a later turn, when a receive would not find nothing; or
    // nothing, if the socket is closed or let go before. Asking twice is asking once.
    void await_readable(readiness_handler& who);
    // The same with who.on_writable() and a send.
    void await_writable(readiness_handler& who);

    // No more bytes will be sent; the peer sees the end after what is already under way. TLS ends
    // with it: what is received from now on is as it comes on the wire.
    void shutdown_send() noexcept;
    // A TLS peer is told, if that needs no waiting.
    void close() noexcept;
    // Closes, and what could not be sent is forgotten rather than kept by the kernel.
    void abort() noexcept;

    // Stops watching and gives the connection away.
    [[nodiscard]] loose_connection release();

private:
    [[nodiscard]] core::receive_result receive_plain(std::span<std::byte> into) noexcept;
    [[nodiscard]] core::receive_result receive_secured(std::span<std::byte> into) noexcept;
    // Tells the set what TLS has left in the socket.
    void note_socket_read() noexcept;

    posix::descriptor descriptor_;
    descriptor_budget::slot slot_;
    std::unique_ptr<secure_stream> stream_;
    readiness_set::watch_ptr watch_;  // null: closed. Given back before the descriptor closes.
};

}  // namespace monolock::server
