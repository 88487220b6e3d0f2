#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "client/attempt.hpp"
#include "client/call.hpp"
#include "client/failure.hpp"
#include "client/reactor.hpp"
#include "client/routes.hpp"
#include "client/target.hpp"
#include "tls/client_context.hpp"

namespace monolock::detail {

// What the acquires and the locks of one driven client share. Nobody runs the reactor but the
// application's loop, through poll().
struct driven_core {
    // Throws monolock::error.
    explicit driven_core(client_options options);

    [[nodiscard]] bool is_elsewhere() const noexcept { return process != ::getpid(); }

    std::shared_ptr<const target> to;
    std::shared_ptr<reactor> loop;
    std::shared_ptr<routes> ways;
    std::optional<tls::client_context_source> contexts;  // nothing: plain
    pid_t process = ::getpid();
};

// One acquire of a driven client: one attempt, or several with delays between them, until its
// outcome is taken. Like an attempt it decides nothing about ownership, and waits for nothing
// itself: all is guarded by the reactor's mutex, and the application is called with it released.
//
//     idle ─► [loading ─►] trying ─► settled ─► over
//                ▲           │          │ take(), which judges anew
//                └─ pausing ◄┴──────────┘ with retry
//
// Over TLS each attempt has a thread: it reads the files, and then escorts the attempt to a server
// that answers. It ends there, so a claim that waits in a queue has none.
class pursuit final : public reactor::member, public std::enable_shared_from_this<pursuit> {
public:
    using callback = std::function<void()>;
    // The attempt whose claim is now the caller's; or why there is none.
    using outcome = std::variant<std::shared_ptr<attempt>, failure>;

    pursuit(std::shared_ptr<driven_core> on, std::variant<claim_request, errc> asked, bool retries,
            callback on_result);

    // The rest with the mutex held; each may release it for a while.

    void start(reactor::guard& held);
    // Whatever it had come to, the outcome is `stopped`.
    void cancel(reactor::guard& held);
    // Calls back no more, and returns when no thread runs the callback: not to be called in it.
    void fall_silent(reactor::guard& held);
    // The attempt whose outcome take() would take now, if there is one.
    [[nodiscard]] std::shared_ptr<attempt> candidate() const noexcept;
    [[nodiscard]] std::optional<outcome> take(reactor::guard& held);

    // Any thread, and a forked child.
    [[nodiscard]] const std::shared_ptr<driven_core>& core() const noexcept { return on_; }

    // --- reactor::member: the end of a pause ---

    void on_ready() override {}
    void on_time() override;
    void settle(reactor::guard& held) override;

private:
    enum class phase { idle, loading, trying, pausing, due, settled, over };

    void try_once(reactor::guard& held);
    void load(std::uint64_t at);
    [[nodiscard]] std::shared_ptr<attempt> begin(tls::context secured_by, reactor::guard& held);
    void hear(const attempt& from, reactor::guard& held);
    [[nodiscard]] bool pause_after(const failure& why);
    void fail(failure why, reactor::guard& held);
    void tell(reactor::guard& held);

    const std::shared_ptr<driven_core> on_;
    const std::variant<claim_request, errc> asked_;
    const bool retries_;
    const callback on_result_;

    phase phase_ = phase::idle;
    std::uint64_t tries_ = 0;  // tells the files of this one from those of an earlier one
    retry_delays delays_;
    std::shared_ptr<attempt> attempt_;
    std::optional<failure> failed_;  // besides what the attempt says
    std::stop_source given_up_;
    bool silent_ = false;
    int telling_ = 0;  // threads that are in the callback
    std::condition_variable told_;
};

}  // namespace monolock::detail
