#include "monolock/client.hpp"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "client/attempt.hpp"
#include "client/call.hpp"
#include "client/engine.hpp"
#include "client/held_claim.hpp"

namespace monolock {

namespace {

using detail::attempt;
using detail::failure;
using detail::held_claim;
using detail::manner;
using detail::refusal;

using grant = std::shared_ptr<held_claim>;
using outcome = std::variant<grant, failure>;

bool is_failure(const outcome& result, errc code) {
    const auto* const why = std::get_if<failure>(&result);
    return why != nullptr && why->code == make_error_code(code);
}

// A grant that was lost before the work could start turns into the failure that it is.
void judge_before_start(outcome& result) {
    if (const auto* const granted = std::get_if<grant>(&result)) {
        if (auto lost = (*granted)->loss()) {
            lost->at = stage::queued;  // no work was started
            result = *std::move(lost);
        }
    }
}

// The loss that with_lock last joined to an exception of the work, per thread (loss_joined_to).
struct joined_errors {
    std::exception_ptr work;
    std::exception_ptr loss;
};
thread_local joined_errors last_joined;

std::exception_ptr to_exception(const failure& why) {
    try {
        detail::raise(why);
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace

// What the client shares with nobody. Works in a forked child too: there it starts anew and leaves
// what it finds as it is, since a thread that does not exist there may hold any mutex in it.
class client::impl {
public:
    explicit impl(client_options options)
        : to_{std::make_shared<const detail::target>(std::move(options))},
          process_{new process_state{*to_}} {}
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;
    ~impl() {
        process_state* const state = process_.load();
        if (state->process == ::getpid()) {
            delete state;
        }
    }

    [[nodiscard]] outcome try_once(std::string_view name, std::chrono::milliseconds lease,
                                   manner how, const std::stop_token& stop);
    // With a purpose of work, a grant that is lost before the work could start is a failed attempt.
    enum class purpose { handle, work };
    [[nodiscard]] outcome retry(std::string_view name, std::chrono::milliseconds lease,
                                purpose what_for, const std::stop_token& stop);

    // The handle, or the failure in ec, or thrown if that is null.
    [[nodiscard]] static lock unwrap(outcome&& result, std::error_code* ec) {
        if (auto* const granted = std::get_if<grant>(&result)) {
            if (ec != nullptr) {
                ec->clear();
            }
            return lock{std::move(*granted)};
        }
        const auto& why = std::get<failure>(result);
        if (ec == nullptr) {
            detail::raise(why);
        }
        *ec = why.code;
        return {};
    }

    void work_once(std::string_view name, std::chrono::milliseconds lease, const guarded_work& work,
                   const std::stop_token& stop, std::error_code* ec);
    void work_retry(std::string_view name, std::chrono::milliseconds lease,
                    const guarded_work& work, const std::stop_token& stop, std::error_code* ec);

private:
    struct process_state {
        explicit process_state(const detail::target& to) {
            if (const auto& secured =
                    to.places.front().secured) {  // the files are the same for all
                contexts.emplace(secured->files);
            }
        }

        pid_t process = ::getpid();
        std::mutex mutex;
        std::shared_ptr<detail::engine> engine;              // guarded by mutex
        std::optional<tls::client_context_source> contexts;  // nothing: plain
    };

    [[nodiscard]] process_state& here();
    [[nodiscard]] std::shared_ptr<detail::engine> running_engine();
    [[nodiscard]] outcome make_attempt(detail::claim_request request, const std::stop_token& stop);

    std::shared_ptr<const detail::target> to_;
    std::atomic<process_state*> process_;
};

client::impl::process_state& client::impl::here() {
    process_state* state = process_.load();
    if (state->process == ::getpid()) {
        return *state;
    }
    auto fresh = std::make_unique<process_state>(*to_);
    if (process_.compare_exchange_strong(state, fresh.get())) {
        return *fresh.release();
    }
    return *state;  // another thread of the child was first
}

std::shared_ptr<detail::engine> client::impl::running_engine() {
    process_state& state = here();
    const std::scoped_lock held{state.mutex};
    if (!state.engine) {
        state.engine = std::make_shared<detail::engine>(to_);
    }
    return state.engine;
}

outcome client::impl::try_once(std::string_view name, std::chrono::milliseconds lease, manner how,
                               const std::stop_token& stop) {
    auto request = detail::make_request(name, lease, how);
    const auto* const wrong = std::get_if<errc>(&request);
    if (wrong != nullptr && *wrong != errc::wait_expired) {
        return refusal(*wrong);
    }
    if (stop.stop_requested()) {
        return refusal(errc::stopped);
    }
    if (wrong != nullptr) {
        return refusal(*wrong);
    }
    try {
        return make_attempt(std::get<detail::claim_request>(std::move(request)), stop);
    } catch (const error& failed) {  // no thread
        return failure{.code = failed.code(), .at = failed.at(), .detail = {}, .admitted = false};
    }
}

outcome client::impl::make_attempt(detail::claim_request request, const std::stop_token& stop) {
    const auto runs_on = running_engine();
    if (runs_on->runs_here()) {
        return refusal(errc::in_callback);
    }
    tls::context secured_by;
    if (to_->options.tls) {
        auto loaded = detail::load_files(*here().contexts, stop);
        if (auto* const wrong = std::get_if<failure>(&loaded)) {
            return std::move(*wrong);
        }
        secured_by = std::get<tls::context>(std::move(loaded));
    }
    const auto subject = std::make_shared<attempt>(runs_on->loop(), to_, runs_on->ways(),
                                                   std::move(request), std::move(secured_by));
    // Made first: whatever leaves this function early, the attempt ends with it.
    auto claim = std::make_shared<held_claim>(runs_on, subject);
    {
        auto held = runs_on->loop()->lock();
        subject->start();
        subject->settle(held);
    }
    std::optional<failure> failed;
    {
        const std::stop_callback on_stop{stop, [&subject] {
                                             auto held = subject->loop()->lock();
                                             subject->cancel(errc::stopped);
                                             subject->settle(held);
                                         }};
        auto held = runs_on->loop()->lock();
        failed = subject->take_outcome(held);
    }
    if (failed) {
        return *std::move(failed);
    }
    if (stop.stop_requested()) {
        return refusal(errc::stopped, stage::queued);  // granted, but nobody wants it any more
    }
    subject->announce_held();
    return claim;
}

outcome client::impl::retry(std::string_view name, std::chrono::milliseconds lease,
                            purpose what_for, const std::stop_token& stop) {
    detail::retry_delays delays{*to_};
    while (true) {
        outcome result =
            try_once(name, lease, {.pace = detail::address_round::manner::quick}, stop);
        if (what_for == purpose::work) {
            judge_before_start(result);
        }
        const auto* const why = std::get_if<failure>(&result);
        if (why == nullptr || !detail::is_worth_another_try(*why)) {
            return result;
        }
        if (!detail::pause(delays.next(*why), stop)) {
            return refusal(errc::stopped);
        }
    }
}

namespace {

// Runs the work under the lock; the loss, if there was one. The work's own exception passes, with
// the loss joined to it.
std::optional<failure> run_work(held_claim& claim, const guarded_work& work,
                                const std::stop_token& stop, std::error_code* ec) {
    last_joined = {};
    try {
        const std::stop_callback on_stop{stop, [&claim] { claim.stop().request_stop(); }};
        work(claim.stop().get_token(), claim.token());
    } catch (...) {
        const auto lost = claim.release();
        if (lost) {
            last_joined = {.work = std::current_exception(), .loss = to_exception(*lost)};
        }
        if (ec != nullptr) {
            *ec = lost ? lost->code : std::error_code{};
        }
        throw;
    }
    return claim.release();
}

void run_or_report(outcome&& result, const guarded_work& work, const std::stop_token& stop,
                   std::error_code* ec) {
    std::optional<failure> failed;
    if (const auto* const granted = std::get_if<grant>(&result)) {
        failed = run_work(**granted, work, stop, ec);
    } else {
        failed = std::get<failure>(std::move(result));
    }
    if (ec != nullptr) {
        *ec = failed ? failed->code : std::error_code{};
    } else if (failed) {
        detail::raise(*failed);
    }
}

}  // namespace

std::exception_ptr loss_joined_to(const std::exception_ptr& work_error) noexcept {
    return work_error && work_error == last_joined.work ? last_joined.loss : nullptr;
}

void client::impl::work_once(std::string_view name, std::chrono::milliseconds lease,
                             const guarded_work& work, const std::stop_token& stop,
                             std::error_code* ec) {
    outcome result = try_once(name, lease, {}, stop);
    judge_before_start(result);
    run_or_report(std::move(result), work, stop, ec);
}

void client::impl::work_retry(std::string_view name, std::chrono::milliseconds lease,
                              const guarded_work& work, const std::stop_token& stop,
                              std::error_code* ec) {
    run_or_report(retry(name, lease, purpose::work, stop), work, stop, ec);
}

client::client(client_options options) : impl_{std::make_shared<impl>(std::move(options))} {}
client::client(client&& other) noexcept = default;
client& client::operator=(client&& other) noexcept = default;
client::~client() = default;

lock client::acquire(std::string_view name, std::chrono::milliseconds lease,
                     const std::stop_token& stop) {
    return impl::unwrap(impl_->try_once(name, lease, {}, stop), nullptr);
}

lock client::acquire(std::string_view name, std::chrono::milliseconds lease,
                     const std::stop_token& stop, std::error_code& ec) {
    return impl::unwrap(impl_->try_once(name, lease, {}, stop), &ec);
}

lock client::try_acquire(std::string_view name, std::chrono::milliseconds lease,
                         const std::stop_token& stop) {
    outcome result = impl_->try_once(name, lease, {.queue = false, .wait = {}}, stop);
    return is_failure(result, errc::busy) ? lock{} : impl::unwrap(std::move(result), nullptr);
}

lock client::try_acquire(std::string_view name, std::chrono::milliseconds lease,
                         const std::stop_token& stop, std::error_code& ec) {
    return impl::unwrap(impl_->try_once(name, lease, {.queue = false, .wait = {}}, stop), &ec);
}

lock client::acquire_for(std::string_view name, std::chrono::milliseconds lease,
                         std::chrono::nanoseconds wait, const std::stop_token& stop) {
    outcome result = impl_->try_once(name, lease, {.queue = true, .wait = wait}, stop);
    return is_failure(result, errc::wait_expired) ? lock{}
                                                  : impl::unwrap(std::move(result), nullptr);
}

lock client::acquire_for(std::string_view name, std::chrono::milliseconds lease,
                         std::chrono::nanoseconds wait, const std::stop_token& stop,
                         std::error_code& ec) {
    return impl::unwrap(impl_->try_once(name, lease, {.queue = true, .wait = wait}, stop), &ec);
}

lock client::acquire_retry(std::string_view name, std::chrono::milliseconds lease,
                           const std::stop_token& stop) {
    return impl::unwrap(impl_->retry(name, lease, impl::purpose::handle, stop), nullptr);
}

lock client::acquire_retry(std::string_view name, std::chrono::milliseconds lease,
                           const std::stop_token& stop, std::error_code& ec) {
    return impl::unwrap(impl_->retry(name, lease, impl::purpose::handle, stop), &ec);
}

void client::with_lock(std::string_view name, std::chrono::milliseconds lease,
                       const guarded_work& work, const std::stop_token& stop) {
    impl_->work_once(name, lease, work, stop, nullptr);
}

void client::with_lock(std::string_view name, std::chrono::milliseconds lease,
                       const guarded_work& work, const std::stop_token& stop, std::error_code& ec) {
    impl_->work_once(name, lease, work, stop, &ec);
}

void client::with_lock_retry(std::string_view name, std::chrono::milliseconds lease,
                             const guarded_work& work, const std::stop_token& stop) {
    impl_->work_retry(name, lease, work, stop, nullptr);
}

void client::with_lock_retry(std::string_view name, std::chrono::milliseconds lease,
                             const guarded_work& work, const std::stop_token& stop,
                             std::error_code& ec) {
    impl_->work_retry(name, lease, work, stop, &ec);
}

}  // namespace monolock
