#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "load/modes.hpp"
#include "load/sockets.hpp"
#include "tls/channel.hpp"

namespace monolock::bench {

// One claim on a lock of its own, made without ever waiting: connect, over TLS the handshake,
// ACQUIRE, and then what the server says. What server or network do to it is a stage and never an
// exception; measurement_error is for what this machine or the generator itself lacks.
class attempt {
public:
    enum class stage : std::uint8_t {
        none,  // not begun, or closed by this side
        connecting,
        securing,  // the TLS handshake
        claiming,  // ACQUIRE is sent
        waiting,
        owning,
        ended,  // by the other side: see how()
    };
    enum class ending : std::uint8_t {
        refused,  // there was no connection
        closed,   // the end of the stream, without a word: so ends an expired session
        told,     // an ERROR frame
        broken,   // a reset, or TLS that failed
    };

    attempt() noexcept = default;
    // Begins to connect; the lock is lock_name(serial). See connect_to for the source address.
    attempt(const target& to, std::size_t serial, std::chrono::milliseconds lease);

    [[nodiscard]] stage at() const noexcept { return stage_; }
    [[nodiscard]] bool is_admitted() const noexcept {
        return stage_ == stage::waiting || stage_ == stage::owning;
    }
    // After ended.
    [[nodiscard]] ending how() const noexcept { return ending_; }
    // For poller::add_connecting.
    [[nodiscard]] int fd() const noexcept { return fd_.get(); }

    // Goes on as far as it can. `events` is what the poller reported. Returns how many heartbeats
    // were answered.
    std::size_t advance(const target& to, std::uint32_t events);

    // Sends a heartbeat. For an admitted one.
    void beat();

    // Closes as a client of the library does: over TLS with close_notify.
    void close() noexcept;

private:
    void connected(const target& to, std::uint32_t events);
    void secure();
    void claim();
    void send(std::span<const std::byte> bytes);
    std::size_t take_frames();
    std::size_t take(std::span<const std::byte> bytes);
    [[nodiscard]] std::size_t receive(std::span<std::byte> into);
    void end(ending how) noexcept;

    unique_fd fd_;
    std::unique_ptr<tls::channel> channel_;  // null: plain
    std::size_t serial_ = 0;
    std::chrono::milliseconds lease_{0};
    stage stage_ = stage::none;
    ending ending_ = ending::closed;
};

}  // namespace monolock::bench
