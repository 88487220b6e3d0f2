#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "load/sockets.hpp"
#include "tls/channel.hpp"

namespace monolock::bench {

// Makes the context of all TLS connections of a run. The server is not verified, which would cost
// the generator alone. With a certificate and its key (paths of PEM files; empty: none) the
// connections show it.
[[nodiscard]] tls::context make_client_context(const std::string& certificate,
                                               const std::string& key);

// A connection of the generator's, plain or TLS. Everything that spoils the measurement is thrown
// as measurement_error.
class connection {
public:
    connection() noexcept = default;
    // Connected; over TLS (with a context) the handshake has only begun. See connect_to.
    connection(const endpoint& server, std::size_t serial, const tls::context& context);
    connection(connection&&) noexcept = default;
    connection& operator=(connection&& other) noexcept;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    // Closes as a client of the library does: over TLS with close_notify.
    ~connection() { close(); }

    // For a poller: edge triggered readability is what take_acquired waits for.
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }
    void close() noexcept;

    // Sends all of it. During the TLS handshake the bytes are kept (one send's) and go out when
    // that is done, in a call of take_acquired or receive_frame.
    void send(std::span<const std::byte> bytes);

    // Goes on as far as it can without waiting. True if exactly one ACQUIRED frame was there, false
    // if nothing was (yet).
    [[nodiscard]] bool take_acquired();

    // Waits, at most 10 s, for exactly one frame that is as long as `frame` and starts with its
    // type.
    void receive_frame(std::span<std::byte> frame, std::byte type);

    // What was negotiated: "TLSv1.3, TLS_AES_256_GCM_SHA384, x25519". Empty for a plain one.
    [[nodiscard]] std::string negotiated() const;

private:
    [[nodiscard]] bool secured();
    [[nodiscard]] std::size_t receive(std::span<std::byte> into);
    void wait_until_readable() const;

    unique_fd fd_;
    std::unique_ptr<tls::channel> channel_;  // null: plain
    bool secured_ = false;
    std::vector<std::byte> unsent_;
};

}  // namespace monolock::bench
