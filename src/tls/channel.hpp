#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tls/context.hpp"

struct ssl_st;

namespace monolock::tls {

// How a call ended.
enum class status : std::uint8_t {
    ok,
    wants_read,   // nothing goes on before the socket can be read
    wants_write,  // … can be written
    peer_closed,  // the peer's word: end of file, close_notify, or a reset
    alerted,      // the peer's word as well: a fatal alert, see alert()
    silence,      // the local kernel's verdict (ETIMEDOUT, …), see system_error()
    failed,       // the bytes or the certificate were refused here; an alert is on its way
};

// One TLS connection over a non-blocking stream socket, driven by readiness: no call blocks, none
// raises SIGPIPE, and nothing is kept from one thread to the next, so a channel may move between
// threads as long as one at a time uses it. It does not own the descriptor and never closes it.
// After peer_closed, alerted, silence or failed only the observers may be called, with one
// exception: when a send ended with peer_closed, receive finds what the peer said before, an alert
// for example.
class channel {
public:
    struct result {
        status outcome = status::ok;
        std::size_t count = 0;  // with ok: at least 1
    };

    // `descriptor` must stay open for as long as the channel is used. Throws std::bad_alloc.
    channel(const context& from, role side, int descriptor);
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel();

    // Goes on with the handshake; ok when it is done. A server whose client was refused by
    // certificate, and a client that refuses its server, end with failed.
    [[nodiscard]] status handshake() noexcept;

    // One receive of at most into.size() bytes, which must not be 0. `into` gets what was decrypted
    // already, or one record from the socket. wants_read says that socket and buffers are empty,
    // or hold less than a record; with one exception: after as many bytes as the largest record
    // has, all of records without bytes of the caller's (key updates), a peer is as good as silent,
    // and others are not kept waiting for it.
    [[nodiscard]] result receive(std::span<std::byte> into) noexcept;

    // Whether a receive may return bytes although the socket never becomes readable again: they
    // have left the socket and wait in here. To be asked after each receive that returned bytes,
    // and after the handshake.
    [[nodiscard]] bool holds_input() const noexcept;

    // What the last call of receive or handshake got of the socket itself.
    enum class socket_read : std::uint8_t {
        none,   // it was not read
        full,   // as much as was asked for, or its end: there may be more
        less,   // less than was asked for
        empty,  // nothing was left
    };
    [[nodiscard]] socket_read last_socket_read() const noexcept { return io_.last; }

    // Encrypts and sends. The count may be below bytes.size(). After wants_write (or wants_read)
    // the next send must begin with the same bytes and offer at least as many; they may have moved.
    [[nodiscard]] result send(std::span<const std::byte> bytes) noexcept;

    // Tells the peer that no more bytes will come, if the socket takes it at once and no send is
    // half done. May be called in any state, and does nothing where it makes no sense.
    void send_close_notify() noexcept;

    // --- observers ---

    // The number of the fatal alert (RFC 8446, section 6) after alerted.
    [[nodiscard]] std::optional<std::uint8_t> alert() const noexcept { return alert_; }
    // errno after silence, or after a peer_closed that was a reset; else 0.
    [[nodiscard]] int system_error() const noexcept { return io_.error; }
    // What happened, in OpenSSL's words: after failed ("certificate verify failed: certificate has
    // expired"), and after alerted the alert ("certificate required"). Text from a certificate is
    // never part of it.
    [[nodiscard]] std::string failure() const;
    // Whether the server asked this client for a certificate.
    [[nodiscard]] bool certificate_requested() const noexcept { return certificate_requested_; }
    // For what OpenSSL is asked or told directly: the peer's certificate, names to expect.
    [[nodiscard]] ssl_st* native() const noexcept { return ssl_.get(); }

    // --- for callbacks that OpenSSL makes in a handshake ---

    // The channel of an object of OpenSSL's.
    [[nodiscard]] static channel& of(const ssl_st* object) noexcept;
    // More on why the callback refuses; failure() ends with it.
    void explain_failure(std::string why) { explanation_ = std::move(why); }
    void note_certificate_request() noexcept { certificate_requested_ = true; }

private:
    struct free_ssl {
        void operator()(ssl_st* object) const noexcept;
    };
    // What the socket said last. OpenSSL reaches it through the BIO.
    struct io_state {
        int descriptor = -1;
        int error = 0;  // errno of the failure that ended the connection
        socket_read last = socket_read::none;
        std::size_t allowed = 0;  // how much this call may still read
    };
    friend struct socket_bio;

    [[nodiscard]] status verdict(int returned) noexcept;

    io_state io_;
    std::unique_ptr<ssl_st, free_ssl> ssl_;
    std::uint64_t openssl_error_ = 0;
    std::string explanation_;
    std::optional<std::uint8_t> alert_;
    bool certificate_requested_ = false;
    bool broken_ = false;        // after which OpenSSL must not be asked to send anything
    bool send_pending_ = false;  // a record is half out
};

}  // namespace monolock::tls
