#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "posix/descriptor.hpp"
#include "tls/channel.hpp"
#include "tls/client_context.hpp"

namespace monolock::detail {

// How a target's connections are secured; the same for all of them.
struct security {
    tls::client_files files;
    tls::server_name expected;
};

// The connection of one claim: a connected stream socket, plain or with TLS over it. No call
// blocks. One thread at a time; but descriptor() and abandon() are for any, and for a forked child.
class wire {
public:
    enum class status : std::uint8_t {
        ok,
        blocked,  // nothing goes on before the socket is ready for interest()
        closed,   // for good; see end()
    };
    struct result {
        status outcome = status::ok;
        std::size_t count = 0;  // with ok: at least 1
    };
    // Why it is closed: connection_closed, unless TLS knows better.
    struct ending {
        std::error_code code;
        std::string detail;
    };

    wire() noexcept = default;
    wire(const wire&) = delete;
    wire& operator=(const wire&) = delete;
    // As abandon(): whoever used it has closed it, unless this is a forked child.
    ~wire() { abandon(); }

    // Before anything else, and again after close(); the socket is non-blocking.
    void open(posix::descriptor connected) noexcept;

    // Puts TLS over it: handshake() until that is ok, and nothing else before. `how` must outlive
    // the wire.
    void secure(const tls::context& from, const security& how);
    [[nodiscard]] bool is_secured() const noexcept { return channel_.has_value(); }
    // One step; it may compute for a few milliseconds.
    [[nodiscard]] status handshake();

    // Blocked: socket and TLS have no byte more, unless holds_input().
    [[nodiscard]] result receive(std::span<std::byte> into);
    // After blocked the next send must begin with the same bytes. After closed receive() still
    // returns what the peer said before.
    [[nodiscard]] result send(std::span<const std::byte> bytes);

    // What to wait for on the socket: EPOLLIN, EPOLLOUT or both.
    [[nodiscard]] std::uint32_t interest() const noexcept { return input_needs_ | output_needs_; }
    // Whether a receive may return bytes although the socket never becomes readable.
    [[nodiscard]] bool holds_input() const noexcept { return channel_ && channel_->holds_input(); }

    // After closed, until it is opened again.
    [[nodiscard]] const ending& end() const noexcept { return end_; }

    // -1 before open() and after close().
    [[nodiscard]] int descriptor() const noexcept { return socket_.load(); }
    // Says close_notify if the socket takes it at once, and ends the connection for every process
    // that holds a copy of the descriptor. No byte follows.
    void close() noexcept;
    // In a forked child: closes the child's copy and touches nothing else. The connection, and what
    // TLS knows of it, are the parent's.
    void abandon() noexcept;

private:
    [[nodiscard]] status take(tls::status did);
    [[nodiscard]] status end_by_system(int error);
    [[nodiscard]] status end_by_tls();

    std::atomic<int> socket_{-1};
    std::optional<tls::channel> channel_;
    const security* how_ = nullptr;  // with a channel
    std::uint32_t input_needs_ = EPOLLIN;
    std::uint32_t output_needs_ = 0;
    ending end_;
};

}  // namespace monolock::detail
