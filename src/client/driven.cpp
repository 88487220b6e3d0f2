#include "monolock/driven.hpp"

#include <utility>
#include <variant>

#include "client/held_claim.hpp"
#include "client/pursuit.hpp"

namespace monolock {

namespace {

using detail::attempt;
using detail::failure;

error to_error(const failure& why) {
    return {why.code, why.at, why.detail};
}

}  // namespace

acquisition::acquisition() noexcept = default;
acquisition::acquisition(std::shared_ptr<detail::pursuit> what) noexcept : what_{std::move(what)} {}
acquisition::acquisition(acquisition&& other) noexcept
    : what_{std::exchange(other.what_, nullptr)} {}

acquisition& acquisition::operator=(acquisition&& other) noexcept {
    if (this != &other) {
        end();
        what_ = std::exchange(other.what_, nullptr);
    }
    return *this;
}

acquisition::~acquisition() {
    end();
}

void acquisition::end() noexcept {
    const auto ended = std::exchange(what_, nullptr);
    if (!ended) {
        return;
    }
    if (ended->core()->is_elsewhere()) {
        if (const auto mine = ended->candidate()) {
            mine->abandon_in_child();
        }
        return;
    }
    auto held = ended->core()->loop->lock();
    ended->fall_silent(held);
    ended->cancel(held);
}

void acquisition::cancel() {
    if (what_ && !what_->core()->is_elsewhere()) {
        auto held = what_->core()->loop->lock();
        what_->cancel(held);
    }
}

std::optional<acquisition::result> acquisition::take() {
    if (!what_) {
        return std::nullopt;
    }
    const auto& core = what_->core();
    if (core->is_elsewhere()) {
        end();
        return result{.held = {}, .failure = to_error(detail::in_other_process(stage::preparing))};
    }
    // Made before anything is taken: whatever leaves this function early, the claim ends with it.
    // And before the guard, so that it ends outside the mutex.
    std::shared_ptr<detail::held_claim> claim;
    auto held = core->loop->lock();
    if (auto candidate = what_->candidate()) {
        claim = std::make_shared<detail::held_claim>(core, std::move(candidate));
    }
    const auto taken = what_->take(held);
    held.unlock();
    if (!taken) {
        return std::nullopt;
    }
    if (const auto* const why = std::get_if<failure>(&*taken)) {
        return result{.held = {}, .failure = to_error(*why)};
    }
    std::get<std::shared_ptr<attempt>>(*taken)->announce_held();
    return result{.held = lock{std::move(claim)}, .failure = std::nullopt};
}

driven_client::driven_client(client_options options)
    : core_{std::make_shared<detail::driven_core>(std::move(options))} {}
driven_client::driven_client(driven_client&& other) noexcept = default;
driven_client& driven_client::operator=(driven_client&& other) noexcept = default;
driven_client::~driven_client() = default;

acquisition driven_client::acquire(std::string_view name, std::chrono::milliseconds lease,
                                   const acquire_manner& how, std::function<void()> on_result) {
    using pace = detail::address_round::manner;
    auto asked = detail::make_request(
        name, lease,
        {.queue = how.queue, .wait = how.wait, .pace = how.retry ? pace::quick : pace::thorough});
    acquisition made{
        std::make_shared<detail::pursuit>(core_, std::move(asked), how.retry, on_result)};
    if (core_->is_elsewhere()) {
        if (on_result) {
            on_result();  // take() says what is wrong
        }
        return made;
    }
    auto held = core_->loop->lock();
    made.what_->start(held);
    return made;
}

int driven_client::native_handle() const noexcept {
    return core_->loop->descriptor();
}

bool driven_client::poll() {
    if (core_->is_elsewhere()) {
        return false;
    }
    core_->loop->poll();
    return true;
}

}  // namespace monolock
