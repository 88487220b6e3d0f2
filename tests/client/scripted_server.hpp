#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "posix/descriptor.hpp"
#include "tls/channel.hpp"

namespace monolock::testing {

// Every wait of a test has this deadline: long enough for a loaded machine, and an end.
inline constexpr std::chrono::seconds patience{10};

// Frames, as bytes.
inline const std::string waiting_frame{"\x11"};
inline const std::string heartbeat_byte{"\x02"};
[[nodiscard]] std::string acquire_frame(std::string_view name, std::chrono::milliseconds lease);
[[nodiscard]] std::string acquired_frame(std::uint64_t token);
[[nodiscard]] std::string error_frame(std::uint8_t code, std::string_view reason);

// One accepted connection, played by the test, plain or with TLS. Blocks; what does not come in
// time fails by exception.
class peer {
public:
    explicit peer(posix::descriptor connection) noexcept;

    // Does the server's part of a TLS handshake; everything below goes through TLS if it ends ok.
    [[nodiscard]] tls::status secure(const tls::context& with);
    // After secure().
    [[nodiscard]] const tls::channel& channel() const noexcept { return *channel_; }
    // After the end: whether the client said close_notify before it.
    [[nodiscard]] bool heard_close_notify() const noexcept;

    // Exactly so many bytes.
    [[nodiscard]] std::string read(std::size_t count);
    // The next bytes must be these.
    void expect(std::string_view bytes);
    void expect_acquire(std::string_view name, std::chrono::milliseconds lease);
    void send(std::string_view bytes);
    // Whether nothing arrives (no byte, no end) for that long.
    [[nodiscard]] bool quiet_for(std::chrono::milliseconds how_long);
    // Reads heartbeats, and answers each with the frame, until the end of file; how many there
    // were.
    std::size_t answer_until_eof(std::string_view frame);
    // Whether the end of file or a reset comes within the time and nothing before it.
    [[nodiscard]] bool ends_within(std::chrono::milliseconds how_long);
    void close() noexcept { connection_.reset(); }
    // RST.
    void reset() noexcept;
    // For what TLS should not see.
    [[nodiscard]] int descriptor() const noexcept { return connection_.get(); }

private:
    [[nodiscard]] bool readable_within(std::chrono::milliseconds how_long);
    // What has come, at most so many bytes; none at the end.
    [[nodiscard]] std::size_t receive(char* into, std::size_t most);

    posix::descriptor connection_;
    std::unique_ptr<tls::channel> channel_;
};

// Listens on a free port of the loopback; the test accepts and plays each connection.
class scripted_server {
public:
    enum class state { open, closed };
    // A closed one has its port and refuses connections there, as a standby does.
    explicit scripted_server(state at_first = state::open);

    [[nodiscard]] std::string address() const;
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    // A connected socket, as a dialer returns it.
    [[nodiscard]] int connect() const;
    [[nodiscard]] peer accept();
    [[nodiscard]] std::optional<peer> accept_within(std::chrono::milliseconds how_long);
    // Of a closed one.
    void open();
    // No connection is taken any more.
    void stop_listening() noexcept { listener_.reset(); }

private:
    std::uint16_t port_ = 0;
    posix::descriptor listener_;
};

// A port where connecting hangs: its queue of connections is full, so the kernel drops every SYN.
class black_hole {
public:
    black_hole();
    [[nodiscard]] std::string address() const;
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    std::uint16_t port_ = 0;
    posix::descriptor listener_;
    std::array<posix::descriptor, 4> fillers_;
};

}  // namespace monolock::testing
