#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <monolock/client.hpp>
#include <monolock/error.hpp>
#include <monolock/export.hpp>
#include <monolock/lock.hpp>

namespace monolock {

namespace detail {
class pursuit;
struct driven_core;
}  // namespace detail

/// @addtogroup driving
/// @{

/// How to ask for a lock, beyond its name and its lease.
struct acquire_manner {
    /// False: no queueing. The place is given up (errc::busy) as soon as the server says WAITING.
    bool queue = true;
    /// At most so long, resolving, connecting, queueing and retries counted together; then
    /// errc::wait_expired. Zero or less makes no connection. Absent: for ever.
    std::optional<std::chrono::nanoseconds> wait{};
    /// Repeated while it fails with condition::retryable, after the delays of
    /// client::acquire_retry.
    bool retry = false;
};

/// One acquire of a driven_client, under way or over. Move-only, and for one thread at a time.
///
/// Destroying it ends it as cancel() does, but tells nobody: the callback is not called any more,
/// and does not run any more on another thread.
class MONOLOCK_API acquisition {
public:
    /// Nothing.
    acquisition() noexcept;
    /// @{
    /// What was moved from is nothing.
    acquisition(acquisition&& other) noexcept;
    acquisition& operator=(acquisition&& other) noexcept;
    /// @}
    acquisition(const acquisition&) = delete;
    acquisition& operator=(const acquisition&) = delete;
    ~acquisition();

    /// What it came to: a lock that is held, or why there is none.
    struct result {
        lock held;                     ///< empty if there is a failure
        std::optional<error> failure;  ///< of a server's ERROR: its errc number, and its reason
    };

    /// The result; nothing as long as there is none, and once it was taken. A grant is judged anew
    /// here, with a fresh reading of the clock: one that aged on its way to the caller is a
    /// failure, or, with retry, nothing, and the callback will be called again. Never blocks on the
    /// network.
    [[nodiscard]] std::optional<result> take();

    /// Ends it at once at any point before take() gave a lock: closes the connection, which leaves
    /// the queue, or gives the lock back. The result is errc::stopped; the callback is called, on
    /// this thread, unless it was before.
    void cancel();

private:
    friend class driven_client;
    MONOLOCK_LOCAL explicit acquisition(std::shared_ptr<detail::pursuit> what) noexcept;
    MONOLOCK_LOCAL void end() noexcept;

    std::shared_ptr<detail::pursuit> what_;
};

/// A client without a thread of its own, for programs that have an event loop: what
/// <monolock/asio.hpp> is made of, and what GLib, libuv, Qt or an epoll loop can drive in the same
/// way. The loop watches one descriptor for input, and calls poll() when it is readable. Nothing
/// else: the timers of the leases are behind that descriptor too, on boot_clock.
///
///     add native_handle() to the loop, for input, level triggered
///     when it is readable:                          client.poll();
///     asked = client.acquire(name, lease, {}, [] { wake the loop up; });
///     woken, in the loop:                           if (auto result = asked.take()) { ... }
///
/// Everything that client promises holds here too, with one difference: heartbeats are sent by
/// poll(), so they stop when the loop does. A loop that stands still for 0.8 x lease has lost its
/// locks; lost() says so at once, and loss_token() and on_loss() say so in the next poll(). While
/// it stands still nothing can tell it: keep long work off the loop's thread.
///
/// Threads: all calls may be made from any thread at the same time, poll() too. Names are resolved,
/// dialers called, and TLS files read and handshakes made on short-lived threads of the library, so
/// that the loop waits for none of it; with plain TCP to a numeric address there is none. What
/// client_options::on_stage is told comes from poll(), from a call of the caller, or from such a
/// thread.
///
/// fork: a child cannot go on with its parent's client. poll() returns false there and touches
/// nothing, locks and acquisitions report other_process, and the parent's go on.
class MONOLOCK_API driven_client {
public:
    /// Checks the options as client does. Throws monolock::error; with a code of the system
    /// category if the system gives no descriptors. Connects nowhere.
    explicit driven_client(client_options options);
    /// @{
    /// What was moved from may be destroyed or assigned to.
    driven_client(driven_client&& other) noexcept;
    driven_client& operator=(driven_client&& other) noexcept;
    /// @}
    driven_client(const driven_client&) = delete;
    driven_client& operator=(const driven_client&) = delete;
    /// Nobody can drive its locks any more then, and they will be lost: release them first.
    ~driven_client();

    /// Asks for a lock. The callback is called once there is a result, and only has to see to it
    /// that somebody calls take(): from poll(), from cancel(), on a thread of the library, or
    /// before acquire() returns (for wrong input). It may take any mutex that is not held while
    /// calling the library, must not throw, and must not destroy the acquisition. It may be empty.
    [[nodiscard]] acquisition acquire(std::string_view name, std::chrono::milliseconds lease,
                                      const acquire_manner& how, std::function<void()> on_result);

    /// Readable whenever poll() has something to do. Owned by the client; for watching only.
    [[nodiscard]] int native_handle() const noexcept;

    /// Does what is due: reads, judges, beats, tries again. Blocks for nothing. False in a forked
    /// child, where the descriptor is not to be watched.
    bool poll();

private:
    std::shared_ptr<detail::driven_core> core_;
};

/// @}

}  // namespace monolock
