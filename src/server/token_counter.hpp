#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "core/session_port.hpp"
#include "core/token_source.hpp"

namespace monolock::server {

// How far grants may go.
struct grant_limits {
    std::uint64_t ceiling = std::numeric_limits<std::uint64_t>::max();  // tokens are below it
    // Of the leases of those who are granted.
    std::chrono::milliseconds lease_max = std::chrono::milliseconds::max();
    friend bool operator==(const grant_limits&, const grant_limits&) = default;
};

// The tokens of this process: one atomic number for all shards, moved along by the wall clock. It
// grants within its limits, which are none unless somebody sets some, while it is open, and while
// the mandate is in force, if there is one. All but next() is for one thread besides the shards,
// and for the time before they run.
class token_counter final : public core::token_source {
public:
    // What grants were refused for since it was last asked.
    struct demand {
        bool tokens = false;                 // the ceiling was reached
        bool mandate = false;                // it was not in force
        std::chrono::milliseconds lease{0};  // the longest that was refused; zero: none
    };

    [[nodiscard]] std::optional<core::fencing_token> next(
        std::chrono::milliseconds lease) noexcept override;

    // Closed it grants nothing. Open from the start.
    void open() noexcept { open_.store(true, std::memory_order_release); }
    void close() noexcept { open_.store(false, std::memory_order_release); }

    void limit(const grant_limits& to) noexcept;
    // All tokens from now on are at least that.
    void start_at(std::uint64_t first) noexcept;
    // The last that was given, or the one before the first.
    [[nodiscard]] std::uint64_t last() const noexcept {
        return last_.load(std::memory_order_acquire);
    }

    // Before the shards run. The mandate must outlive this.
    void hold_to(core::mandate_port& mandate) noexcept { mandate_ = &mandate; }
    // Called on a shard's thread when a limit, or the mandate, refused somebody. It must not block
    // or throw.
    void when_refused(std::function<void()> call) { refused_ = std::move(call); }
    [[nodiscard]] demand take_demand() noexcept;

private:
    void want_lease(std::chrono::milliseconds lease) noexcept;
    void tell() const noexcept {
        if (refused_) {
            refused_();
        }
    }

    std::atomic<std::uint64_t> last_{0};
    std::atomic<std::uint64_t> ceiling_{grant_limits{}.ceiling};
    std::atomic<std::chrono::milliseconds::rep> lease_max_{grant_limits{}.lease_max.count()};
    std::atomic<bool> open_{true};
    std::atomic<bool> tokens_wanted_{false};
    std::atomic<bool> mandate_missed_{false};
    std::atomic<std::chrono::milliseconds::rep> lease_wanted_{0};
    core::mandate_port* mandate_ = nullptr;
    std::function<void()> refused_;
};

}  // namespace monolock::server
