#include "coordination/token_window.hpp"

#include <algorithm>
#include <limits>

#include "core/token_source.hpp"

namespace monolock::coordination {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t left, std::uint64_t right) noexcept {
    return left > most - right ? most : left + right;
}

std::uint64_t of_clock(std::uint64_t unix_ms) noexcept {
    return unix_ms > (most >> 10U) ? most : unix_ms << 10U;
}

// The next token that no ceiling holds back. The clock alone does not lead a ceiling past 2^53.
std::uint64_t due(const token_range& tokens, token_position at, std::uint64_t window) noexcept {
    const std::uint64_t room = exact_below - std::min(exact_below, window);
    return std::max({tokens.first, sum(at.last, 1), std::min(of_clock(at.unix_ms), room)});
}

}  // namespace

std::uint64_t token_window(std::chrono::milliseconds ttl) noexcept {
    return of_clock(4 * static_cast<std::uint64_t>(std::max<std::int64_t>(ttl.count(), 0)));
}

std::uint64_t next_ceiling(const token_range& tokens, token_position at,
                           std::uint64_t window) noexcept {
    return std::max(tokens.ceiling, sum(due(tokens, at, window), window));
}

bool ceiling_is_near(const token_range& tokens, token_position at, std::uint64_t window) noexcept {
    return tokens.ceiling < sum(due(tokens, at, window), window / 2);
}

std::optional<std::uint64_t> next_token(const token_range& tokens, token_position at) noexcept {
    const std::uint64_t before_first = tokens.first - std::min<std::uint64_t>(tokens.first, 1);
    const auto token = core::next_token({std::max(at.last, before_first)},
                                        std::min(at.unix_ms, most >> 10U), tokens.ceiling);
    return token ? std::optional{token->value} : std::nullopt;
}

}  // namespace monolock::coordination
