#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "coordination/role.hpp"

// The ceiling of the tokens: how far a renewal raises it, and what may be granted below it. All
// sums stop at the largest number there is.
namespace monolock::coordination {

// Tokens that the wall clock makes stay below: they are exact in JSON numbers.
inline constexpr std::uint64_t exact_below = std::uint64_t{1} << 53U;

// How far above what is due a ceiling is put: 4 TTL of the wall clock, in tokens. A renewal that is
// answered counts for 0.8 TTL, so an honest clock uses a fifth at most before its mandate is over;
// the rest is for clocks that step by seconds and for more than 1024 grants a millisecond. What it
// costs is that the tokens of a new active start up to a window ahead of the clock.
[[nodiscard]] std::uint64_t token_window(std::chrono::milliseconds ttl) noexcept;

// The ceiling that the next renewal puts: a window above the next token that is due, and never
// below `tokens.ceiling`. (Not above that each time: it would run away from the clock.)
[[nodiscard]] std::uint64_t next_ceiling(const token_range& tokens, token_position at,
                                         std::uint64_t window) noexcept;

// Whether less than half a window is left, and a renewal should come early.
[[nodiscard]] bool ceiling_is_near(const token_range& tokens, token_position at,
                                   std::uint64_t window) noexcept;

// The token of the next grant, as core::next_token makes it, at least `tokens.first`. Nothing if
// that is not below the ceiling: the grant waits for a renewal.
[[nodiscard]] std::optional<std::uint64_t> next_token(const token_range& tokens,
                                                      token_position at) noexcept;

}  // namespace monolock::coordination
