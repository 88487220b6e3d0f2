#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include <monolock/export.hpp>

namespace monolock {

/// @addtogroup failing
/// @{

/// Everything that the library itself can report. The numbers are permanent. One category holds
/// them all: monolock::error_category(). Besides these a call may report a code of
/// std::system_category(): the connect error of the system, as the system gave it (compare with
/// std::errc).
///
/// An ERROR frame of the server with code C is reported as the number 0x100 + C. Codes that have no
/// enumerator here keep their number and follow their range (wire_code, condition::retryable).
enum class errc : int {
    // Invalid input; nothing was sent.
    empty_name = 1,          ///< the name is empty
    name_too_long = 2,       ///< a name has at most 255 bytes
    name_not_utf8 = 3,       ///< a name is strict UTF-8
    lease_out_of_range = 4,  ///< a lease is 1 ms to 2^32 - 1 ms
    invalid_address = 5,     ///< client_options::address is not one, or no list of them
    invalid_options = 6,     ///< client_options that contradict themselves or lie out of range
    no_claim = 7,            ///< the handle is empty: moved from, released, or never acquired
    in_callback = 8,  ///< acquiring in a callback on the library's own thread, which would have
                      ///< to wait for itself

    // Before a claim existed.
    host_not_found = 16,      ///< the name has no address
    resolve_failed = 17,      ///< the resolver could not say
    connect_timeout = 18,     ///< no address answered within client_options::connect_timeout
    dialer_failed = 19,       ///< client_options::dialer gave no descriptor
    thread_unavailable = 20,  ///< the background thread could not be started; nothing was sent
    tls_files = 21,  ///< a file of client_options::tls is missing, or not what it should be;
                     ///< nothing was sent
    server_not_trusted = 22,   ///< no trusted authority vouches for the server's certificate, or it
                               ///< is for another name, or expired
    certificate_refused = 23,  ///< the server refused the client's certificate, or that none was
                               ///< given. Maybe only after the ACQUIRE was sent; it was not handled
    tls_failed = 24,  ///< the TLS handshake failed otherwise: nothing in common, or no TLS at all

    // How a claim that was sent came to its end.
    acquire_timeout = 32,  ///< the ACQUIRE was sent and 0.8 x lease passed without an answer
    heartbeat_timeout =
        33,  ///< a heartbeat was not answered within 0.8 x lease of the last answer's
             ///< sending; also when the process itself was stopped for that long
    connection_closed = 34,   ///< end of file, reset, or another failure of the connection; also in
                              ///< the TLS handshake, when no claim was sent yet (error::at() tells)
    protocol_violation = 35,  ///< the peer sent what a monolock server does not send
    other_process = 36,       ///< the claim belongs to the process that forked this one

    // The caller's own wish.
    stopped = 48,       ///< the caller's stop token, before the lock was granted
    busy = 49,          ///< try_acquire: somebody else owns the lock
    wait_expired = 50,  ///< acquire_for: the time was up before the lock was granted

    // The server's ERROR frames.
    server_shutting_down = 0x101,       ///< it ends in good order; come back at once
    closed_by_administrator = 0x102,    ///< an operator ended this claim
    unsupported_version = 0x110,        ///< the server does not speak protocol version 1
    first_message_not_acquire = 0x111,  ///< never sent to this library
    duplicate_acquire = 0x112,          ///< never sent to this library
    unknown_message_type = 0x113,       ///< never sent to this library
    server_empty_name = 0x114,          ///< as empty_name, found by the server
    server_name_too_long = 0x115,       ///< as name_too_long, found by the server
    server_name_not_utf8 = 0x116,       ///< as name_not_utf8, found by the server
    server_lease_not_positive = 0x117,  ///< as lease_out_of_range, found by the server
    not_authorized = 0x118,             ///< the server's access rules do not permit this claim
};

/// What the caller can do next. A code may meet several: `ec == monolock::condition::retryable`.
enum class condition : int {
    /// A new attempt may succeed without any change: what with_lock_retry repeats. Failed
    /// resolution
    /// and connects (any code of the system category), lost connections, server codes below 0x10.
    retryable = 1,
    /// A claim existed and is gone: its place in the queue, or its ownership (error::at says
    /// which).
    claim_lost = 2,
    /// The server's rules refuse this client this lock, or this client altogether.
    denied = 3,
    /// The call itself is wrong and will fail again: invalid input, or refused by the server as
    /// such.
    misuse = 4,
    /// Something was sent and no answer came: the server may count the claim until its lease
    /// passes.
    in_doubt = 5,
};

/// The one category of errc. Its codes also equal std::errc where the meaning is the same:
/// operation_canceled (stopped), timed_out (the timeouts), resource_unavailable_try_again (busy).
[[nodiscard]] MONOLOCK_API const std::error_category& error_category() noexcept;
/// The category of condition.
[[nodiscard]] MONOLOCK_API const std::error_category& condition_category() noexcept;

/// So that an errc converts to a std::error_code by itself.
[[nodiscard]] MONOLOCK_API std::error_code make_error_code(errc code) noexcept;
/// So that a code may be compared with a condition.
[[nodiscard]] MONOLOCK_API std::error_condition make_error_condition(condition what) noexcept;

/// The code byte of the server's ERROR frame, if the code comes from one.
[[nodiscard]] MONOLOCK_API std::optional<std::uint8_t> wire_code(
    const std::error_code& code) noexcept;

/// How far a claim had come. In order; a claim never goes back.
enum class stage {
    preparing,   ///< checking the input, starting the background thread
    connecting,  ///< resolving and connecting (or the dialer is at work), the TLS handshake
    requesting,  ///< connected, the ACQUIRE is sent, nothing was answered yet
    queued,      ///< the server answered WAITING
    held,        ///< granted
};

/// What the throwing calls throw. code() keeps the cause; what() is for people and may change.
class MONOLOCK_API error : public std::system_error {
public:
    /// Made by the library. `detail` is what detail() says.
    error(std::error_code code, stage at, const std::string& detail);
    /// @{
    /// Copies never throw.
    error(const error&) noexcept;
    error(error&&) noexcept;
    error& operator=(const error&) noexcept;
    error& operator=(error&&) noexcept;
    /// @}
    ~error() override;

    /// Where it happened. `held` says that the ownership of a granted lock was lost: if there was
    /// guarded work, it ran, wholly or in part. Otherwise no work was started.
    [[nodiscard]] stage at() const noexcept { return at_; }
    /// What is known beyond the code: the address, the file and what is wrong with it, the system's
    /// or the server's word. what() is this and the code's message. For people only, may be empty,
    /// and may hold text from outside: escape it before printing.
    [[nodiscard]] const char* detail() const noexcept { return detail_.what(); }

private:
    std::runtime_error detail_;  ///< a string whose copy cannot throw
    stage at_;
};

/// The server sent an ERROR frame.
class MONOLOCK_API server_error : public error {
public:
    /// code is errc's number of the frame's code.
    server_error(std::error_code code, stage at, const std::string& reason);
    /// @{
    /// Copies never throw.
    server_error(const server_error&) noexcept;
    server_error(server_error&&) noexcept;
    server_error& operator=(const server_error&) noexcept;
    server_error& operator=(server_error&&) noexcept;
    /// @}
    ~server_error() override;

    /// The frame's code byte.
    [[nodiscard]] std::uint8_t wire_code() const noexcept {
        return monolock::wire_code(code()).value_or(0);
    }
    /// The frame's reason, as sent; the same as detail().
    [[nodiscard]] const char* reason() const noexcept { return detail(); }
    /// True below 0x10: a condition of the server, a new connection may succeed.
    [[nodiscard]] bool temporary() const noexcept { return wire_code() < 0x10; }
};

/// The second of two joined errors. When guarded work throws and the lock was lost as well,
/// with_lock lets the work's own exception through, unchanged; this finds the loss that was joined
/// to it, as an exception_ptr to a monolock::error, or null if none was. Ask on the thread that
/// called with_lock, before it calls with_lock again:
///
///     catch (const import_failed& failure) {
///         if (auto loss = monolock::loss_joined_to(std::current_exception())) { ... }
///     }
///
/// (The overloads with an error_code set it to the loss while the work's exception passes.)
[[nodiscard]] MONOLOCK_API std::exception_ptr loss_joined_to(
    const std::exception_ptr& work_error) noexcept;

/// @}

}  // namespace monolock

template <>
struct std::is_error_code_enum<monolock::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<monolock::condition> : std::true_type {};
