#pragma once

#include <chrono>

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
    [[nodiscard]] core::fencing_token next() noexcept override { return {++last_}; }
    // The next token is one above `last`.
    void rewind_to(std::uint64_t last) noexcept { last_ = last; }

private:
    std::uint64_t last_ = 0;
};

}  // namespace monolock::support
