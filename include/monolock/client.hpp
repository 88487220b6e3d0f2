#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include <monolock/error.hpp>
#include <monolock/export.hpp>
#include <monolock/lock.hpp>

namespace monolock {

/// @addtogroup acquiring
/// @{

/// How the server is authenticated, and this client to it. Files are PEM, and are read anew at each
/// attempt, so that a rotated certificate is used by the next one: write files next to the old ones
/// and rename them. What is wrong with a file is reported by the attempt (errc::tls_files), if it
/// still is 50 ms later: a certificate and its key are not replaced at one moment.
struct tls_options {
    /// Certificates of the authorities to trust, or the server's own. Empty: the system's store, as
    /// OpenSSL finds it.
    std::string ca_file{};
    /// @{
    /// The client's certificate, followed by intermediates if there are any, and its private key,
    /// not encrypted. Both or none.
    std::string certificate_file{};
    std::string key_file{};
    /// @}

    /// The name that the server's certificate must be for: a DNS name or an IP address. Empty: the
    /// host of the address that is tried, which must have one then; with a list each server has its
    /// own. There is no way to connect without this check. Only subject alternative names count; a
    /// wildcard stands for one leftmost label.
    std::string server_name{};
};

/// All else follows from the lease.
struct client_options {
    /// Of the server. Required: "host:port", "[::1]:7070", ":port" (this machine), "unix:/path".
    ///
    /// Or of an active server and its standbys, at most 16: "a:7070,b:7070". No blank stands beside
    /// a comma, no address comes twice, and a path holds no comma. ONLY FOR SERVERS THAT ETCD
    /// COORDINATES (their -etcd-endpoints and -etcd-prefix are the same). A list over any other
    /// servers is two lock spaces: two clients then own the same lock, one at each, and nothing
    /// tells them. The client cannot know which it is.
    ///
    /// An attempt tries the addresses one after the other until a server answers its claim, WAITING
    /// or ACQUIRED, and then stays there. All claims of a client share the order: what answered
    /// last comes first, what failed goes to the end.
    ///   - The next address is tried in the same attempt where no server can count the claim any
    ///     more: the name was not resolved, nobody connected, TLS failed, the connection was closed
    ///     before an answer, or ERROR 0x01 (or another below 0x10) came before one. So there is
    ///     never more than one claim, and no server is asked twice for it.
    ///   - Else the attempt ends: silence after the ACQUIRE (acquire_timeout: the claim is in
    ///   doubt,
    ///     and 0.8 x lease has passed), an ERROR from 0x10 up, a client certificate refused, what
    ///     no monolock server sends; and every loss of a claim that was answered. A new attempt is
    ///     a new claim, at the tail of the queue, and is tried elsewhere first unless the server
    ///     had refused it in so many words.
    ///   - When all fail the code is that of the first (but one that no retry cures, such as
    ///     server_not_trusted, comes before, and a server's ERROR after), and the detail names all.
    ///     With a list the detail of any other failure begins with the address.
    std::string address;

    /// For resolving the name; again for one round over all its addresses, shared among them: each
    /// gets an equal part of what is left; and again for the TLS handshake with the one that
    /// connected. Positive; more than a year is a year.
    ///
    /// With a list all of it is shared (so is the wait of acquire_for, if that is shorter): an
    /// address gets an equal part of what is left for resolving or dialing, and again for
    /// connecting. One that stays silent while connecting is left after a tenth of the whole for
    /// each of its endpoints (at least 250 ms, if its part allows), so that a machine that is gone
    /// delays nobody; unless more attempts follow, the silent ones are tried once more at the end,
    /// with all that is left. A TLS handshake gets what one address alone would, or 0.8 x lease if
    /// that is less (but no less than the address's part).
    std::chrono::milliseconds connect_timeout{5000};

    /// The local end of a TCP connection: a numeric address, "10.0.0.7" or "[::1]", or with a port,
    /// "10.0.0.7:9000". Empty: the system chooses. Not with a Unix address or a dialer.
    std::string local_address{};

    /// Absent: plain TCP. `tls_options{}`: TLS with the system's store, without a certificate.
    std::optional<tls_options> tls{};

    /// For tunnels and proxies: returns a connected stream socket, which the library then owns (it
    /// makes it non-blocking and close-on-exec, and does TLS over it if asked to). Replaces
    /// resolving and connecting; bounded by connect_timeout. It is called once per attempt, with
    /// the address above (with a list: once for each address that is tried, with that), on a thread
    /// of its own, so that a stop need not wait for it. A call that is not wanted any more has its
    /// stop token requested, and what it still returns is closed; it must own what it uses, for it
    /// may end later than the client. All signals are blocked on that thread: a dialer that starts
    /// a program must unblock them for it. It fails by throwing: a std::system_error's code is
    /// reported as it is.
    std::function<int(const std::string& address, std::stop_token stop)> dialer{};

    /// Told of each stage that a claim enters (connecting, requesting, queued, held), in order and
    /// once, however many addresses are tried; held before the acquire returns. Runs on the
    /// background thread or on the caller's: keep it short. What it throws is dropped.
    std::function<void(std::string_view name, stage entered)> on_stage{};
};

/// Guarded work: gets a token whose stop is requested when the lock is lost or the caller asks to
/// stop, and the fencing token.
using guarded_work = std::function<void(std::stop_token stop, std::uint64_t token)>;

/// A client of one server, or of one lock space. Every claim is a connection of its own; one
/// background thread, started by the first call that needs it, keeps the heartbeats of all of them
/// and leaves with the last of the client and its locks, so that work may spin on all cores or
/// block in a system call without losing its lock.
///
/// All calls may be made from any thread at the same time. In a forked child the client may be used
/// anew (it starts a thread of its own); locks of the parent stay the parent's. With TLS, only if
/// no thread of the parent was acquiring at the fork: OpenSSL's own locks do not survive it.
///
/// Every call that takes a name and a lease:
///   - The name is 1 to 255 bytes of UTF-8, compared byte for byte. The lease, 1 ms to 2^32 - 1 ms,
///     is the silence after which the server gives the lock away. Take at least 2.5 x the worst
///     round trip (a round trip up to 0.4 x lease is survived for ever), and lease / 4 below the
///     idle limits of NATs and proxies on the way. Both are checked before anything is sent.
///   - It makes one attempt: resolve the name, try all its addresses, connect, ACQUIRE, wait in the
///     queue, first come first served. (with_lock_retry and acquire_retry make several.)
///   - Not reentrant: a name acquired a second time by the same process, or inside guarded work of
///     that name, waits like anybody else, for its own holder if it must.
///   - `stop` ends the call within 50 ms at every point before the grant and leaves no claim
///   behind;
///     a token that is already stopped makes no connection.
///   - The overload without an error_code throws monolock::error (server_error for an ERROR of the
///     server); the one with it reports there, clears it on success, and returns an empty lock on
///     failure. Both may throw std::bad_alloc.
///   - It blocks, so it cannot be made in a callback (on_loss, on_stage, a stop callback) that runs
///     on this client's background thread: there it fails at once with in_callback. Hand the wish
///     to a thread of your own.
///   - If the background thread cannot be started the call fails with thread_unavailable.
///   - SIGPIPE is never raised. Descriptors are close-on-exec.
class MONOLOCK_API client {
public:
    /// Checks the options: throws monolock::error (invalid_address, invalid_options). Connects
    /// nowhere.
    explicit client(client_options options);
    /// @{
    /// What was moved from may be destroyed or assigned to.
    client(client&& other) noexcept;
    client& operator=(client&& other) noexcept;
    /// @}
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    /// Locks outlive their client. No call may be running.
    ~client();

    /// @{
    /// Waits in the queue for as long as `stop` allows.
    [[nodiscard]] lock acquire(std::string_view name, std::chrono::milliseconds lease,
                               const std::stop_token& stop = {});
    [[nodiscard]] lock acquire(std::string_view name, std::chrono::milliseconds lease,
                               const std::stop_token& stop, std::error_code& ec);
    /// @}

    /// @{
    /// One try, no queueing: gives the place in the queue up as soon as the server says WAITING. A
    /// lock that is owned is no exception: the throwing overload returns an empty lock too (the
    /// other one sets errc::busy).
    [[nodiscard]] lock try_acquire(std::string_view name, std::chrono::milliseconds lease,
                                   const std::stop_token& stop = {});
    [[nodiscard]] lock try_acquire(std::string_view name, std::chrono::milliseconds lease,
                                   const std::stop_token& stop, std::error_code& ec);
    /// @}

    /// @{
    /// Waits at most `wait`, resolving, connecting and queueing counted together; a wait of zero or
    /// less makes no connection. When it runs out the throwing overload returns an empty lock (the
    /// other one sets errc::wait_expired).
    [[nodiscard]] lock acquire_for(std::string_view name, std::chrono::milliseconds lease,
                                   std::chrono::nanoseconds wait, const std::stop_token& stop = {});
    [[nodiscard]] lock acquire_for(std::string_view name, std::chrono::milliseconds lease,
                                   std::chrono::nanoseconds wait, const std::stop_token& stop,
                                   std::error_code& ec);
    /// @}

    /// @{
    /// acquire, repeated while it fails with condition::retryable: after 100 ms doubling to 5 s
    /// (with a list of addresses to 500 ms, to be there soon when a standby opens), each delay
    /// uniform between 0.5 and 1.5 x nominal; after a first 0x01 at once, a further one without an
    /// admitted session in between backs off. Returns other failures at once.
    [[nodiscard]] lock acquire_retry(std::string_view name, std::chrono::milliseconds lease,
                                     const std::stop_token& stop = {});
    [[nodiscard]] lock acquire_retry(std::string_view name, std::chrono::milliseconds lease,
                                     const std::stop_token& stop, std::error_code& ec);
    /// @}

    /// @{
    /// Acquires, runs the work on this thread, and releases when it returns or throws. `stop` while
    /// queued ends the call; while the work runs it only asks the work to stop: the lock is held,
    /// and heartbeats go on, until the work returns, and a graceful stop is not an error. A lock
    /// that was lost while the work ran (or before it started: then it does not run) is reported
    /// even if the work succeeded; if the work threw, its own exception passes, and loss_joined_to
    /// finds the loss. The overload with an error_code reports all but the work's own exception
    /// there.
    void with_lock(std::string_view name, std::chrono::milliseconds lease, const guarded_work& work,
                   const std::stop_token& stop = {});
    void with_lock(std::string_view name, std::chrono::milliseconds lease, const guarded_work& work,
                   const std::stop_token& stop, std::error_code& ec);
    /// @}

    /// @{
    /// with_lock over acquire_retry. Once the work has been started its outcome is the call's: it
    /// is never run twice.
    void with_lock_retry(std::string_view name, std::chrono::milliseconds lease,
                         const guarded_work& work, const std::stop_token& stop = {});
    void with_lock_retry(std::string_view name, std::chrono::milliseconds lease,
                         const guarded_work& work, const std::stop_token& stop,
                         std::error_code& ec);
    /// @}

private:
    class MONOLOCK_LOCAL impl;
    std::shared_ptr<impl> impl_;
};

/// @}

}  // namespace monolock
