#pragma once

// The client for programs on Boost.Asio: the same claims as <monolock/client.hpp>, awaited with any
// completion token (callbacks, use_future, use_awaitable, as_tuple, deferred, …). Header-only over
// <monolock/driven.hpp>, so the library itself needs no Boost. CMake: link monolock::asio.
// Boost 1.81 or newer; standalone Asio is not supported.

#include <fcntl.h>

#include <boost/version.hpp>
#if BOOST_VERSION < 108100
#error "monolock/asio.hpp needs Boost 1.81 or newer"
#endif

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <monolock/boot_clock.hpp>
#include <monolock/client.hpp>
#include <monolock/driven.hpp>
#include <monolock/error.hpp>
#include <monolock/lock.hpp>

namespace monolock::asio {

class client;
class lock;

/// Not for use: what the two classes are made of.
namespace detail {

namespace net = ::boost::asio;

// As Asio's tokens know it: use_awaitable throws it, use_future too. Compares with monolock::errc,
// with monolock::condition and with std::errc as the std::error_code does.
[[nodiscard]] inline boost::system::error_code to_asio(const std::error_code& code) {
    if (code == make_error_code(errc::stopped)) {
        return net::error::operation_aborted;
    }
    if (code.category() == std::system_category()) {
        return {code.value(), boost::system::system_category()};
    }
    return code;
}

// Something that comes once and that operations wait for. Any thread may set it.
class event {
public:
    explicit event(const net::any_io_executor& on)
        : never_{on, net::steady_timer::time_point::max()} {}

    void set() {
        const std::scoped_lock held{mutex_};
        is_set_ = true;
        never_.cancel();
    }

    void reset() {
        const std::scoped_lock held{mutex_};
        is_set_ = false;
    }

    // The handler runs later, on its executor: once this is set, or when it is cancelled by its
    // slot.
    template <class Handler>
    void wait(Handler&& handler) {
        const std::scoped_lock held{mutex_};
        if (is_set_) {
            net::post(never_.get_executor(), std::forward<Handler>(handler));
        } else {
            never_.async_wait(std::forward<Handler>(handler));
        }
    }

private:
    std::mutex mutex_;
    bool is_set_ = false;
    net::steady_timer never_;
};

// Lets an executor drive a driven_client for as long as somebody needs it. While nobody does it
// leaves no work behind, so that io_context::run() can return.
class driver : public std::enable_shared_from_this<driver> {
public:
    driver(const net::any_io_executor& on, client_options options)
        : claims_{std::move(options)}, watched_{on, duplicate(claims_.native_handle())} {}

    [[nodiscard]] driven_client& claims() noexcept { return claims_; }
    [[nodiscard]] net::any_io_executor get_executor() { return watched_.get_executor(); }

    // Needs the driver while it lives.
    class need {
    public:
        explicit need(std::shared_ptr<driver> what) : what_{std::move(what)} { what_->begin(); }
        need(const need&) = delete;
        need& operator=(const need&) = delete;
        ~need() { what_->end(); }
        [[nodiscard]] driver& operator*() const noexcept { return *what_; }
        [[nodiscard]] driver* operator->() const noexcept { return what_.get(); }

    private:
        std::shared_ptr<driver> what_;
    };

private:
    // A descriptor of its own: Asio closes what it watches.
    [[nodiscard]] static int duplicate(int of) {
        const int made = ::fcntl(of, F_DUPFD_CLOEXEC, 0);
        if (made < 0) {
            throw error{{errno, std::system_category()}, stage::preparing, "fcntl"};
        }
        return made;
    }

    void begin() {
        const std::scoped_lock held{mutex_};
        watch();
        ++needs_;
    }

    void end() {
        const std::scoped_lock held{mutex_};
        if (--needs_ == 0) {
            boost::system::error_code ignored;
            watched_.cancel(ignored);
        }
    }

    // With the mutex held.
    void watch() {
        if (!watching_) {
            watched_.async_wait(
                net::posix::stream_descriptor::wait_read,
                [self = shared_from_this()](boost::system::error_code) { self->turn(); });
            watching_ = true;
        }
    }

    void turn() {
        {
            const std::scoped_lock held{mutex_};
            watching_ = false;
            if (needs_ == 0) {
                return;
            }
        }
        const bool goes_on = claims_.poll();  // not in a forked child
        const std::scoped_lock held{mutex_};
        if (goes_on && needs_ > 0) {
            watch();
        }
    }

    driven_client claims_;
    std::mutex mutex_;
    net::posix::stream_descriptor watched_;
    bool watching_ = false;
    int needs_ = 0;
};

// A granted claim, until it is released.
class holding : public std::enable_shared_from_this<holding> {
public:
    holding(const std::shared_ptr<driver>& on, monolock::lock claim)
        : ended_{on->get_executor()}, driven_by_{std::in_place, on}, claim_{std::move(claim)} {}

    // Once, when a shared_ptr has it.
    void listen() {
        claim_.on_loss([weak = weak_from_this()](std::error_code why) {
            if (const auto self = weak.lock()) {
                self->lose(why);
            }
        });
    }

    [[nodiscard]] monolock::lock& claim() noexcept { return claim_; }
    [[nodiscard]] event& ended() noexcept { return ended_; }

    // Once it was told.
    [[nodiscard]] std::optional<std::error_code> loss() {
        const std::scoped_lock held{mutex_};
        return loss_;
    }

    // What the release came to, as an exception or null.
    [[nodiscard]] std::exception_ptr release() {
        std::exception_ptr lost;
        try {
            claim_.release();
        } catch (...) {
            lost = std::current_exception();
        }
        ended_.set();
        let_go();
        return lost;
    }

private:
    void lose(std::error_code why) {
        {
            const std::scoped_lock held{mutex_};
            loss_ = why;
        }
        ended_.set();
        let_go();
    }

    // Nobody needs to be driven for this any more.
    void let_go() {
        const std::scoped_lock held{mutex_};
        driven_by_.reset();
    }

    event ended_;  // lost or released
    std::mutex mutex_;
    std::optional<driver::need> driven_by_;
    std::optional<std::error_code> loss_;
    monolock::lock claim_;
};

// What an acquire operation owns; the order of the members is that of their making.
struct asking {
    asking(std::shared_ptr<driver> on, std::string the_name, std::chrono::milliseconds the_lease,
           const acquire_manner& manner)
        : name{std::move(the_name)}, lease{the_lease}, how{manner}, by{std::move(on)} {}

    std::string name;
    std::chrono::milliseconds lease;
    acquire_manner how;
    std::shared_ptr<driver> by;
    event settled{by->get_executor()};
    std::optional<driver::need> driven_by{};
    acquisition asked{};
};

struct acquire_operation {
    std::shared_ptr<asking> it;
    bool is_started = false;

    template <class Self>
    void operator()(Self& self, boost::system::error_code = {});
};

struct loss_operation {
    std::shared_ptr<holding> of;
    bool is_started = false;

    template <class Self>
    void operator()(Self& self, boost::system::error_code = {});
};

}  // namespace detail

/// A granted lock, as monolock::lock is one; see there for what may be relied on. Move-only;
/// destroying it releases quietly. Its heartbeats are sent by the executor of the client that
/// acquired it, which has work as long as the lock is neither lost nor released: io_context::run()
/// does not return before.
///
/// **A blocked executor loses its locks.** While none of its threads is free no heartbeat goes out,
/// and nothing can tell of the loss. After 0.8 x lease the lock is lost: lost() says so at once,
/// wherever it is called, and the operations and loss_token() as soon as a thread is free again.
/// Nothing revives it. Keep work that computes or blocks off the client's executor, or ask lost()
/// before each step that matters; token() guards the rest.
///
/// Threads: one at a time uses a lock. Its operations may wait meanwhile.
/// @ingroup driving
class lock {
public:
    /// No claim.
    lock() noexcept = default;
    /// What was moved from has no claim.
    lock(lock&& other) noexcept
        // A copy: what is moved from can still be waited for, and says that it has no claim.
        : executor_{other.executor_},  // NOLINT(performance-move-constructor-init)
          held_{std::move(other.held_)},
          failure_{std::move(other.failure_)} {}
    /// Releases quietly what it held before.
    lock& operator=(lock&& other) noexcept {
        if (this != &other) {
            drop();
            executor_ = other.executor_;
            held_ = std::move(other.held_);
            failure_ = std::move(other.failure_);
        }
        return *this;
    }
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    ~lock() { drop(); }

    /// Whether it has a claim that it has not released. The claim may be lost.
    [[nodiscard]] explicit operator bool() const noexcept { return held_ != nullptr; }

    /// @{
    /// As in monolock::lock.
    [[nodiscard]] std::uint64_t token() const noexcept { return held_ ? claim().token() : 0; }
    [[nodiscard]] boot_clock::time_point confirmed_until() const noexcept {
        return held_ ? claim().confirmed_until() : boot_clock::time_point{};
    }
    [[nodiscard]] bool lost() const noexcept { return held_ && claim().lost(); }
    [[nodiscard]] std::error_code loss() const noexcept {
        return held_ ? claim().loss() : std::error_code{};
    }
    [[nodiscard]] int native_handle() const noexcept {
        return held_ ? claim().native_handle() : -1;
    }
    /// @}
    /// Requested on loss, on the thread that notices: one of the executor's, or the one that calls
    /// lost() or release().
    [[nodiscard]] std::stop_token loss_token() const noexcept {
        return held_ ? claim().loss_token() : std::stop_token{};
    }

    /// Of the lock that a failed async_acquire completes with: all that is known of the failure
    /// (stage, detail, a server's reason). Null otherwise.
    [[nodiscard]] const error* failure() const noexcept { return failure_.get(); }

    /// Completes when the claim is lost, with `void(boost::system::error_code, std::error_code
    /// loss)`: the first is for the operation itself, so that a loss is a result and no exception.
    /// At once if it is lost already. With operation_aborted, and no loss, if the lock is released
    /// or destroyed meanwhile, or the operation is cancelled (total cancellation: the lock is as
    /// before). With errc::no_claim without a claim. Any number of them may wait.
    template <class Token>
    auto async_wait_for_loss(Token&& token) const {
        return detail::net::async_compose<Token, void(boost::system::error_code, std::error_code)>(
            detail::loss_operation{held_}, token, executor_);
    }

    /// @{
    /// Gives the lock back at once, as monolock::lock does: throws monolock::error if it was lost
    /// before, or there is no claim.
    void release() {
        if (const auto lost = give_back()) {
            std::rethrow_exception(lost);
        }
    }
    void release(std::error_code& ec) noexcept {
        ec.clear();
        try {
            release();
        } catch (const std::system_error& lost) {
            ec = lost.code();
        }
    }
    /// @}

private:
    friend struct detail::acquire_operation;

    lock(detail::net::any_io_executor on, std::shared_ptr<detail::holding> held) noexcept
        : executor_{std::move(on)}, held_{std::move(held)} {}
    lock(detail::net::any_io_executor on, const error& failure)
        : executor_{std::move(on)}, failure_{std::make_shared<const error>(failure)} {}

    [[nodiscard]] monolock::lock& claim() const noexcept { return held_->claim(); }

    [[nodiscard]] std::exception_ptr give_back() {
        const auto released = std::exchange(held_, nullptr);
        if (!released) {
            return std::make_exception_ptr(
                error{make_error_code(errc::no_claim), stage::preparing, {}});
        }
        return released->release();
    }
    void drop() noexcept {
        if (const auto released = std::exchange(held_, nullptr)) {
            static_cast<void>(released->release());
        }
    }

    detail::net::any_io_executor executor_{detail::net::system_executor{}};
    std::shared_ptr<detail::holding> held_;
    std::shared_ptr<const error> failure_;
};

/// A client whose claims an executor drives: no thread of its own, all descriptors and timers
/// behind one descriptor that the executor watches. A handle: copies are the same client. Locks and
/// operations outlive it. Its executor's context must outlive all of them, as for any I/O object.
///
/// What monolock::client promises (options, addresses, TLS, errors, what a lease must be) holds
/// here too. Names are resolved, dialers called, and TLS handshakes made on short-lived threads of
/// the library: the executor waits for none of it.
///
/// The executor may have any number of threads. Heartbeats go through it: give the one of the
/// io_context or thread_pool rather than a strand that is busy.
///
/// fork: a child cannot go on with its parent's client; its locks report other_process.
/// @ingroup driving
class client {
public:
    /// @{
    /// Checks the options; connects nowhere. Throws monolock::error, and
    /// boost::system::system_error if the executor cannot watch the descriptor.
    client(const detail::net::any_io_executor& on, client_options options)
        : driver_{std::make_shared<detail::driver>(on, std::move(options))} {}
    template <class ExecutionContext>
    requires std::is_convertible_v<ExecutionContext&, detail::net::execution_context&> client(
        ExecutionContext& on, client_options options)
        : client{detail::net::any_io_executor{on.get_executor()}, std::move(options)} {}
    /// @}

    /// The one that it was made with.
    [[nodiscard]] detail::net::any_io_executor get_executor() const {
        return driver_->get_executor();
    }

    /// @{
    /// Asks for a lock and waits in its queue. Completes with `void(boost::system::error_code,
    /// lock)`: with a lock that is held, judged with a reading of the clock taken just before the
    /// handler runs, or with an error and an empty lock whose failure() has the rest of it. The
    /// errors are those of monolock::client; errc::busy and errc::wait_expired (see acquire_manner)
    /// are errors as well: without an error there is a lock. Compare them as they are with errc and
    /// condition; their number is that of std::error_code{code}, for Boost's value() is of its own.
    ///
    /// Cancellation, of any type, ends it at every point before the handler runs: the connection
    /// closes at once, which leaves the queue, or gives back a grant that nobody wants any more. It
    /// then completes with operation_aborted.
    template <class Token>
    auto async_acquire(std::string name, std::chrono::milliseconds lease, const acquire_manner& how,
                       Token&& token) const {
        return detail::net::async_compose<Token, void(boost::system::error_code, lock)>(
            detail::acquire_operation{
                std::make_shared<detail::asking>(driver_, std::move(name), lease, how)},
            token, driver_->get_executor());
    }
    template <class Token>
    auto async_acquire(std::string name, std::chrono::milliseconds lease, Token&& token) const {
        return async_acquire(std::move(name), lease, acquire_manner{}, std::forward<Token>(token));
    }
    /// @}

private:
    std::shared_ptr<detail::driver> driver_;
};

template <class Self>
void detail::acquire_operation::operator()(Self& self, boost::system::error_code) {
    const auto mine = it;  ///< this object belongs to `self`, and moves away with it
    if (!std::exchange(is_started, true)) {
        self.reset_cancellation_state(net::enable_total_cancellation());
        mine->driven_by.emplace(mine->by);
        mine->asked = mine->by->claims().acquire(mine->name, mine->lease, mine->how,
                                                 [&settled = mine->settled] { settled.set(); });
        mine->settled.wait(std::move(self));
        return;
    }
    if (self.cancelled() != net::cancellation_type::none) {
        mine->asked.cancel();
    }
    mine->settled.reset();
    auto result = mine->asked.take();
    if (!result) {
        mine->settled.wait(std::move(self));
        return;
    }
    std::error_code code;
    lock held;
    if (result->failure) {
        code = result->failure->code();
        held = lock{mine->by->get_executor(), *result->failure};
    } else {
        const auto granted = std::make_shared<holding>(mine->by, std::move(result->held));
        granted->listen();
        held = lock{mine->by->get_executor(), granted};
    }
    mine->driven_by.reset();  ///< before the handler runs: it may be the last thing that does
    self.complete(to_asio(code), std::move(held));
}

template <class Self>
void detail::loss_operation::operator()(Self& self, boost::system::error_code) {
    const auto mine = of;
    if (!std::exchange(is_started, true)) {
        self.reset_cancellation_state(net::enable_total_cancellation());
        if (mine) {
            mine->ended().wait(std::move(self));
        } else {
            net::post(std::move(self));
        }
        return;
    }
    if (!mine) {
        self.complete(to_asio(make_error_code(errc::no_claim)), {});
    } else if (const auto loss = mine->loss()) {
        self.complete({}, *loss);
    } else {
        self.complete(net::error::operation_aborted, {});
    }
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT)

namespace detail {

[[noreturn]] inline void raise(const boost::system::error_code& refused, const lock& why) {
    const error* const failure = why.failure();
    if (failure == nullptr || refused == net::error::operation_aborted) {
        throw boost::system::system_error{refused};
    }
    if (wire_code(failure->code())) {
        throw server_error{failure->code(), failure->at(), failure->detail()};
    }
    throw error{*failure};
}

[[nodiscard]] inline bool is_abort(const std::exception_ptr& what) {
    try {
        std::rethrow_exception(what);
    } catch (const boost::system::system_error& failed) {
        return failed.code() == net::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

template <class Loss>
[[noreturn]] void throw_joined(const Loss& loss, const std::exception_ptr& failed) {
    try {
        std::rethrow_exception(failed);
    } catch (...) {
        std::throw_with_nested(loss);
    }
}

// Releases after the work, and throws what is to be told.
inline void conclude(lock& held, const std::exception_ptr& failed) {
    try {
        held.release();
    } catch (const server_error& loss) {
        if (failed && !is_abort(failed)) {
            throw_joined(loss, failed);
        }
        throw;
    } catch (const error& loss) {
        if (failed && !is_abort(failed)) {
            throw_joined(loss, failed);
        }
        throw;
    }
    if (failed) {
        std::rethrow_exception(failed);
    }
}

// The work's own coroutine. It owns what it uses: it may be destroyed after its parent.
template <class Work>
net::awaitable<void> guard(std::shared_ptr<const lock> held, Work work) {
    if (!held->lost()) {
        co_await work(*held);
    }
}

}  // namespace detail

/// monolock::client::with_lock as a coroutine. Acquires, awaits `work(const lock&)`, which returns
/// awaitable<void>, and releases when that has ended, however it did.
///
///   - The work is cancelled (terminal cancellation) the moment the lock is lost. It is awaited to
///     its end even then: what it leaves running is not guarded.
///   - The caller's cancellation while queued ends the call: terminal cancellation, and the other
///     kinds if the coroutine lets them through (Asio's reset_cancellation_state). While the work
///     runs it only cancels the work: the lock is held, and heartbeats go on, until it has ended.
///   - A lock that was lost while the work ran, or before it could start (then it does not run), is
///     thrown as monolock::error, even if the work succeeded; so is what kept it from being
///     acquired. If the work threw as well, its exception is nested in that one
///     (std::rethrow_if_nested), unless it only says that it was cancelled. A work's exception
///     passes unchanged if nothing was lost.
///
/// Do not write `work() || held.async_wait_for_loss(use_awaitable)` instead: when the work throws,
/// that waits for the loss.
/// @ingroup driving
template <class Work>
detail::net::awaitable<void> with_lock(client from, std::string name,
                                       std::chrono::milliseconds lease, acquire_manner how,
                                       Work work) {
    namespace net = detail::net;
    auto [refused, granted] =
        co_await from.async_acquire(name, lease, how, net::as_tuple(net::use_awaitable));
    if (refused) {
        detail::raise(refused, granted);
    }
    const auto held = std::make_shared<lock>(std::move(granted));
    const auto on = co_await net::this_coro::executor;
    const auto [order, failed, ended, loss] =
        co_await net::experimental::make_parallel_group(
            net::co_spawn(on, detail::guard<Work>(held, std::move(work)), net::deferred),
            held->async_wait_for_loss(net::deferred))
            .async_wait(net::experimental::wait_for_one{}, net::use_awaitable);
    detail::conclude(*held, failed);
}

/// The same, in one attempt that waits in the queue for as long as it takes.
/// @ingroup driving
template <class Work>
detail::net::awaitable<void> with_lock(client from, std::string name,
                                       std::chrono::milliseconds lease, Work work) {
    return with_lock(std::move(from), std::move(name), lease, acquire_manner{}, std::move(work));
}

#endif

}  // namespace monolock::asio
