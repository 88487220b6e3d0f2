#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/session_port.hpp"
#include "core/time.hpp"
#include "core/token_source.hpp"

namespace monolock::support {

// A clock that stands still until it is moved.
class scripted_clock : public core::clock_port {
public:
    [[nodiscard]] core::time_point now() noexcept override { return now_; }
    void advance(core::nanoseconds by) noexcept { now_ += by; }

private:
    core::time_point now_{std::chrono::hours{1}};
};

// Tokens 1, 2, 3, and what a test puts in their place.
class scripted_tokens : public core::token_source {
public:
    [[nodiscard]] std::optional<core::fencing_token> next(
        std::chrono::milliseconds lease) noexcept override {
        if (lease > lease_max_) {
            return std::nullopt;
        }
        return core::fencing_token{++last_};
    }
    // The next token is one above `last`.
    void rewind_to(std::uint64_t last) noexcept { last_ = last; }
    // Gives none for longer leases from now on; zero: none at all.
    void refuse_above(std::chrono::milliseconds lease) noexcept { lease_max_ = lease; }

private:
    std::uint64_t last_ = 0;
    std::chrono::milliseconds lease_max_ = std::chrono::milliseconds::max();
};

// A mandate that a test ends.
class scripted_mandate : public core::mandate_port {
public:
    [[nodiscard]] bool in_force() noexcept override { return in_force_; }
    void put_in_force(bool is) noexcept { in_force_ = is; }

private:
    bool in_force_ = true;
};

}  // namespace monolock::support
