#pragma once

#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "core/session_port.hpp"
#include "posix/descriptor.hpp"
#include "server/descriptor_budget.hpp"
#include "server/loop.hpp"
#include "server/secure_stream.hpp"

namespace monolock::server {

// A connection that no loop watches: on its way from one shard to another.
struct loose_connection {
    posix::descriptor descriptor;
    descriptor_budget::slot slot;
    std::unique_ptr<secure_stream> stream{};  // null: plain
};

// One non-blocking call on a stream socket, with the kernel's verdicts sorted as the engine wants
// them: a reset or a broken pipe is the peer's word, every other error is silence.
[[nodiscard]] core::receive_result receive_from(int descriptor, std::span<std::byte> into) noexcept;
[[nodiscard]] core::send_result send_to(int descriptor, std::span<const std::byte> bytes) noexcept;

// A non-blocking stream socket watched by a loop, plain or with TLS on it. Asio tells when it is
// ready; receive and send are called here, so that an idle connection costs no buffer
// (docs/decisions/0001). Used by the loop's thread alone.
class connection_socket {
public:
    // Not open afterwards, and the connection closed, if the system refuses to watch it (epoll has
    // a limit of its own).
    connection_socket(loop& on, loose_connection connection);

    [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }

    // From now on the bytes of the connection are TLS; its handshake is the caller's to drive.
    void secure(const tls_setting& with) {
        stream_ = std::make_unique<secure_stream>(with, descriptor_.native_handle());
    }
    // Null on a plain connection.
    [[nodiscard]] secure_stream* stream() const noexcept { return stream_.get(); }
    // A fatal TLS alert is on its way, and a close must not destroy it.
    [[nodiscard]] bool owes_alert() const noexcept { return stream_ && stream_->owes_alert(); }

    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept {
        return stream_ ? stream_->receive(into) : receive_from(descriptor_.native_handle(), into);
    }
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept {
        return stream_ ? stream_->send(bytes) : send_to(descriptor_.native_handle(), bytes);
    }
    // Bytes wait here that have left the socket; see secure_stream.
    [[nodiscard]] bool holds_input() const noexcept { return stream_ && stream_->holds_input(); }
    // How many of the next bytes on the wire there are, at most as many as there is room for. They
    // stay where they are.
    [[nodiscard]] std::size_t peek(std::span<std::byte> into) noexcept;

    // Calls `handler(error_code)` once, later, when a receive (a send) would not block, or with an
    // error when the socket was closed or let go meanwhile. If only bytes that TLS holds are to be
    // received there is no error then: the handler must look whether the socket is open.
    template <class Handler>
    void wait_readable(Handler&& handler) {
        if (holds_input()) {
            boost::asio::post(descriptor_.get_executor(),
                              [handler = std::forward<Handler>(handler)]() mutable {
                                  handler(boost::system::error_code{});
                              });
            return;
        }
        const bool other_way = stream_ && stream_->receive_wants_write();
        descriptor_.async_wait(
            other_way ? watched_descriptor::wait_write : watched_descriptor::wait_read,
            std::forward<Handler>(handler));
    }
    template <class Handler>
    void wait_writable(Handler&& handler) {
        const bool other_way = stream_ && stream_->send_wants_read();
        descriptor_.async_wait(
            other_way ? watched_descriptor::wait_read : watched_descriptor::wait_write,
            std::forward<Handler>(handler));
    }

    // No more bytes will be sent; the peer sees the end after what is already under way. TLS ends
    // with it: what is received from now on is as it comes on the wire.
    void shutdown_send() noexcept;
    // A TLS peer is told, if that needs no waiting.
    void close() noexcept;
    // Closes, and what could not be sent is forgotten rather than kept by the kernel.
    void abort() noexcept;

    // Stops watching and gives the connection away.
    [[nodiscard]] loose_connection release() {
        return {.descriptor = posix::descriptor{descriptor_.release()},
                .slot = std::move(slot_),
                .stream = std::move(stream_)};
    }

private:
    watched_descriptor descriptor_;
    descriptor_budget::slot slot_;
    std::unique_ptr<secure_stream> stream_;
};

}  // namespace monolock::server
