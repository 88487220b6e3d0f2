#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/fact.hpp"
#include "core/session.hpp"
#include "protocol/error_code.hpp"

namespace monolock::core {

class connected_session;

// Replies that could not be written yet.
class output_backlog : public boost::intrusive::list_base_hook<> {
public:
    explicit output_backlog(connected_session& of) noexcept : who_{&of} {}

    [[nodiscard]] connected_session& who() const noexcept { return *who_; }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    // When the first of them could not be written. Not when empty.
    [[nodiscard]] time_point since() const noexcept { return parts_.front().since; }

    void append(std::span<const std::byte> bytes, time_point now);
    // The first `count` bytes are out.
    void remove(std::size_t count) noexcept;

private:
    // Bytes held back at one time.
    struct part {
        std::size_t size = 0;
        time_point since;
    };

    connected_session* who_;
    std::vector<std::byte> bytes_;
    std::vector<part> parts_;  // their sizes add up to all bytes
};

// What became of a receive. The difference between the last two decides who may own a lock:
// peer_closed is the peer's own word (end of file, a reset) and ends the session at once; silence
// is a verdict of the local kernel (ETIMEDOUT, EHOSTUNREACH, …) and says nothing about the peer.
enum class receive_status : std::uint8_t { bytes, nothing, peer_closed, silence };
struct receive_result {
    receive_status status = receive_status::nothing;
    std::size_t count = 0;  // with bytes: at least 1
};

// `sent` with a count below what was offered means that the rest would block; the count may be 0.
enum class send_status : std::uint8_t { sent, peer_closed, silence };
struct send_result {
    send_status status = send_status::sent;
    std::size_t count = 0;
};

// How a connection is given up.
enum class closing : std::uint8_t {
    plain,   // close
    abort,   // close and let the kernel forget what could not be sent
    linger,  // shut down sending, discard input for a bounded time, close: an ERROR is on its way
};

// A session with its connection, as the engine sees it. The server implements it over a socket, the
// simulator over a simulated network. All calls come from the engine's thread; none blocks, none
// calls the engine back.
class connected_session : public session {
public:
    using session::session;
    virtual ~connected_session() = default;

    // One non-blocking receive of at most into.size() bytes. "Nothing" includes, for an encrypted
    // connection, that nothing is left to decrypt.
    [[nodiscard]] virtual receive_result receive(std::span<std::byte> into) noexcept = 0;
    // One non-blocking send.
    [[nodiscard]] virtual send_result send(std::span<const std::byte> bytes) noexcept = 0;

    // Calls session_engine::readable (or writable) once, later, when a receive (a send) would not
    // find nothing. Asking twice before that is asking once.
    virtual void await_readable() = 0;
    virtual void await_writable() = 0;

    // Closes the descriptor; the session itself goes on. Nothing but retire() is called after it.
    virtual void drop_connection() noexcept = 0;

    // The session is over and its connection is to be given up. The engine's last call; the session
    // may be destroyed in it.
    virtual void retire(closing how) noexcept = 0;

private:
    friend class session_engine;

    enum class flow : std::uint8_t {
        open,     // reads, and answers at once
        blocked,  // a reply could not be written: nothing is read until it is out
        mute,     // the descriptor is gone, the lease runs on
        doomed,   // the peer closed; the session ends before the engine returns
    };

    std::unique_ptr<output_backlog> backlog_;  // while blocked
    flow flow_ = flow::open;
};

// Time, for the engine. Called on the engine's thread.
class clock_port {
public:
    virtual ~clock_port() = default;
    [[nodiscard]] virtual time_point now() noexcept = 0;
};

// Whether this server may act at all: one that others may take over from promises to stop in time.
// Called on the engine's thread, after each receive and before what it brought is acted upon.
class mandate_port {
public:
    virtual ~mandate_port() = default;
    [[nodiscard]] virtual bool in_force() noexcept = 0;
};

// Who wants to know: log, metrics, audit. Called in the order in which things happened, after the
// frame that a fact caused was written; must not call the engine back.
class observer_port {
public:
    virtual ~observer_port() = default;
    virtual void on_fact(const fact& what) = 0;
    // An ERROR was due to the session, delivered or not. The session has not ended yet.
    virtual void on_error_due(const connected_session& who, protocol::error_code code,
                              std::string_view reason) = 0;
};

}  // namespace monolock::core
