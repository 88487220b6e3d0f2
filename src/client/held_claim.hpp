#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>

#include "client/attempt.hpp"
#include "monolock/boot_clock.hpp"

namespace monolock::detail {

// A granted claim: what a lock handle points to. Releases at its end. In a process other than the
// one that acquired it touches nothing shared: it reports other_process, and closes the child's
// copy of the descriptor.
class held_claim {
public:
    // `runs_on` is whatever drives the claim, and must live as long.
    held_claim(std::shared_ptr<const void> runs_on, std::shared_ptr<attempt> claim);
    held_claim(const held_claim&) = delete;
    held_claim& operator=(const held_claim&) = delete;
    ~held_claim();

    [[nodiscard]] std::uint64_t token() const noexcept { return claim_->token(); }
    [[nodiscard]] boot_clock::time_point confirmed_until() const noexcept;
    [[nodiscard]] int native_handle() const noexcept { return claim_->native_handle(); }
    // Judged now.
    [[nodiscard]] std::optional<failure> loss();
    [[nodiscard]] bool lost();
    [[nodiscard]] std::stop_source& stop() noexcept { return claim_->stop(); }
    void on_loss(attempt::loss_callback callback);
    // The loss, if it was lost before. Once only.
    [[nodiscard]] std::optional<failure> release();

private:
    [[nodiscard]] bool elsewhere() const noexcept;
    // Reads and judges if the deadline has come; then tells the application of a loss.
    void judge();

    std::shared_ptr<const void> runs_on_;
    std::shared_ptr<attempt> claim_;
    pid_t process_;
    bool released_ = false;
};

}  // namespace monolock::detail
