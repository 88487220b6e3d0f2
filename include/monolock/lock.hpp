#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>

#include <monolock/boot_clock.hpp>
#include <monolock/export.hpp>

namespace monolock {

/// @addtogroup holding
/// @{

namespace detail {
class held_claim;
}

/// A granted lock. Move-only; destroying it releases quietly.
///
/// A claim can be lost at any moment: when the server falls silent, when the connection breaks,
/// when an operator ends it. Loss reaches the caller through loss_token() and on_loss() within the
/// promises below, and through lost() at any time. The library counts ownership from when a
/// confirmed message was *sent*, so this client stops believing no later than the server does, with
/// clocks up to 10 % apart each. It never re-acquires by itself: a new turn is a new acquire, at
/// the queue's tail.
///
/// Two bounds that no client can lift, where only the token guards: work that does not stop when
/// told, and a virtual machine that its hypervisor paused or restored, which may go on believing
/// for the rest of its 0.8 x lease on any clock. So hand token() to the guarded resource and have
/// it refuse a smaller one than it has seen.
///
/// Threads: a handle may be used by one thread at a time; different handles, and the library's own
/// background thread, do not disturb each other. loss_token() is for any thread.
///
/// fork: the claim belongs to the process that acquired. In a child the handle reports lost (other_
/// process), and releasing or destroying it there closes the child's descriptor and nothing else:
/// the parent's claim goes on, and a child that lives on does not keep the lock after the parent
/// released. The stop token does not fire in the child: no thread of the library lives there.
class MONOLOCK_API lock {
public:
    /// No claim.
    lock() noexcept;
    /// What was moved from has no claim.
    lock(lock&& other) noexcept;
    /// Releases quietly what it held before. Self-move is harmless.
    lock& operator=(lock&& other) noexcept;
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    /// Releases quietly; never throws. May run in a stop callback or on_loss callback of this
    /// claim.
    ~lock();

    /// Whether the handle has a claim that it has not released. The claim may be lost.
    [[nodiscard]] explicit operator bool() const noexcept;

    /// The fencing token of the grant: larger than that of every earlier grant of this server
    /// process, over all locks, and never 0. It is about unix milliseconds << 10, so it stays exact
    /// as a JSON number for two centuries. Over a restart of the server tokens go on rising if the
    /// two processes' grants are more than a millisecond apart, the wall clock did not step back
    /// between them, and the first did not grant more than a million times a second on average. 0
    /// without a claim.
    [[nodiscard]] std::uint64_t token() const noexcept;

    /// Until when ownership is confirmed: the send time of the last answered message + 0.8 x lease.
    /// Moves forward with each answered heartbeat, until the loss or the release. A guarded step
    /// that takes D is safe to start if boot_clock::now() + D is before it. The epoch without a
    /// claim.
    [[nodiscard]] boot_clock::time_point confirmed_until() const noexcept;

    /// Whether the claim is lost, as of now: a claim past its deadline is lost even if no thread
    /// has noticed yet. An answer that already waits in the socket is read before that is judged.
    /// Never blocks on the network. False without a claim.
    [[nodiscard]] bool lost() const noexcept;

    /// Why it is lost; no error while it is not. A server's ERROR is its errc number.
    [[nodiscard]] std::error_code loss() const noexcept;

    /// Requested when the claim is lost: at confirmed_until() on silence (within 50 ms on a machine
    /// that schedules us), at once on an end of file, a reset, an ERROR or a protocol violation,
    /// and before the library closes the connection. Its callbacks run on the library's background
    /// thread, or inside lost() or release() of this handle if those notice first: keep them short,
    /// for heartbeats of the same client wait meanwhile. (As everywhere, a std::stop_callback that
    /// throws ends the program; on_loss may throw.) Not requested by a release. A token without
    /// state without a claim.
    [[nodiscard]] std::stop_token loss_token() const noexcept;

    /// Calls back once when the claim is lost, with loss(); at once if it is lost already. Replaces
    /// an earlier callback; an empty one removes it. Threads as for loss_token(). An exception that
    /// leaves it is dropped. It may destroy the handle. A handle that is released or destroyed
    /// while the loss is being told does not miss it: the release waits for the callback, unless it
    /// is made in a callback of the loss itself.
    void on_loss(std::function<void(std::error_code)> callback);

    /// @{
    /// Gives the lock back at once: shutdown and close, nothing is waited for, no byte follows. The
    /// handle is empty afterwards whatever is reported. Throws monolock::error (at stage::held) if
    /// the claim was lost before, or was the parent's (other_process); with errc::no_claim if the
    /// handle is empty.
    void release();
    void release(std::error_code& ec) noexcept;
    /// @}

    /// The descriptor of the claim's connection, or -1. For looking at it (getsockname, fstat) and
    /// for duplicating it on purpose, as monolockctl's guardian process does: the end of this
    /// process then does not end the claim until the duplicate is closed too. Not for reading,
    /// writing, shutting down, closing, or setting options; and not after the loss or the release.
    [[nodiscard]] int native_handle() const noexcept;

private:
    friend class client;
    friend class acquisition;
    MONOLOCK_LOCAL explicit lock(std::shared_ptr<detail::held_claim> claim) noexcept;

    std::shared_ptr<detail::held_claim> claim_;
};

/// @}

}  // namespace monolock
