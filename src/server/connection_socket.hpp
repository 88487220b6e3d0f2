#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/session_port.hpp"
#include "posix/descriptor.hpp"
#include "server/descriptor_budget.hpp"
#include "server/loop.hpp"

namespace monolock::server {

// A connection that no loop watches: on its way from one shard to another.
struct loose_connection {
    posix::descriptor descriptor;
    descriptor_budget::slot slot;
};

// One non-blocking call on a stream socket, with the kernel's verdicts sorted as the engine wants
// them: a reset or a broken pipe is the peer's word, every other error is silence.
[[nodiscard]] core::receive_result receive_from(int descriptor, std::span<std::byte> into) noexcept;
[[nodiscard]] core::send_result send_to(int descriptor, std::span<const std::byte> bytes) noexcept;

// A non-blocking stream socket watched by a loop. Asio tells when it is ready; receive and send are
// called here, so that an idle connection costs no buffer (docs/decisions/0001). Used by the loop's
// thread alone.
class connection_socket {
public:
    // Not open afterwards, and the connection closed, if the system refuses to watch it (epoll has
    // a limit of its own).
    connection_socket(loop& on, loose_connection connection);

    [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }

    [[nodiscard]] core::receive_result receive(std::span<std::byte> into) noexcept {
        return receive_from(descriptor_.native_handle(), into);
    }
    [[nodiscard]] core::send_result send(std::span<const std::byte> bytes) noexcept {
        return send_to(descriptor_.native_handle(), bytes);
    }

    // Calls `handler(error_code)` once when a receive (a send) would not block, or with an error
    // when the socket was closed or let go meanwhile.
    template <class Handler>
    void wait_readable(Handler&& handler) {
        descriptor_.async_wait(watched_descriptor::wait_read, std::forward<Handler>(handler));
    }
    template <class Handler>
    void wait_writable(Handler&& handler) {
        descriptor_.async_wait(watched_descriptor::wait_write, std::forward<Handler>(handler));
    }

    // No more bytes will be sent; the peer sees the end after what is already under way.
    void shutdown_send() noexcept;
    void close() noexcept;
    // Closes, and what could not be sent is forgotten rather than kept by the kernel.
    void abort() noexcept;

    // Stops watching and gives the connection away.
    [[nodiscard]] loose_connection release() {
        return {.descriptor = posix::descriptor{descriptor_.release()}, .slot = std::move(slot_)};
    }

private:
    watched_descriptor descriptor_;
    descriptor_budget::slot slot_;
};

}  // namespace monolock::server
