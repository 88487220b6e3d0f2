#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace monolock::bench {

// Something that spoils the measurement: a refused connection, an answer that is not the expected
// one, a server that is gone. Nothing is retried: a figure with failures in it is no figure.
class measurement_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Throws measurement_error with `what` and the text of errno.
[[noreturn]] void throw_errno(const std::string& what);

// A descriptor that is closed with its owner.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_{fd} {}
    unique_fd(unique_fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        reset(std::exchange(other.fd_, -1));
        return *this;
    }
    unique_fd(const unique_fd&) = delete;
    unique_fd& operator=(const unique_fd&) = delete;
    ~unique_fd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    void reset(int fd = -1) noexcept;

private:
    int fd_ = -1;
};

// An IPv4 address and port, written 127.0.0.1:7070.
struct endpoint {
    sockaddr_in address{};
};
[[nodiscard]] endpoint parse_endpoint(const std::string& text);

// How many loopback source addresses the connections are spread over. The side that closes first
// keeps the port in TIME_WAIT for a minute, and that is the client here: one source address has
// some 28,000 ports, which a fast server uses up in two seconds.
inline constexpr std::uint32_t source_addresses = 64;

// A connected, blocking socket with TCP_NODELAY. Towards a loopback server the source address is
// chosen by `serial`. Blocking costs no time there: the handshake ends inside connect() as long as
// the server's backlog has room.
[[nodiscard]] unique_fd connect_to(const endpoint& server, std::size_t serial);

// The same, but non-blocking and not yet connected: it becomes writable when it is, and reports an
// error when it was refused.
[[nodiscard]] unique_fd begin_to_connect(const endpoint& server, std::size_t serial);

// Writes all of it or throws.
void send_all(int fd, std::span<const std::byte> bytes);

// Raises the soft descriptor limit to the hard one and returns it.
std::size_t raise_descriptor_limit();

}  // namespace monolock::bench
