#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace monolock::server {

// What people send to the lock port by mistake.
enum class foreign_protocol { http, tls, proxy_header, plain_claim };
inline constexpr std::size_t foreign_protocol_count = 4;

// Guesses from the first bytes of a connection what its sender took this port for; nothing if they
// look like none of these. The first is for a port that speaks plain, the other for one that speaks
// TLS.
[[nodiscard]] std::optional<foreign_protocol> guess_foreign_to_plain(
    std::span<const std::byte> first_bytes) noexcept;
[[nodiscard]] std::optional<foreign_protocol> guess_foreign_to_tls(
    std::span<const std::byte> first_bytes) noexcept;

// A sentence for the log.
[[nodiscard]] std::string_view hint(foreign_protocol what) noexcept;

}  // namespace monolock::server
