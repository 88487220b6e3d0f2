#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace monolock::server {

// Guesses from the first bytes of a connection what its sender took this port for, as a sentence
// for the log; nothing if they look like no protocol that people send here by mistake.
[[nodiscard]] std::optional<std::string_view> foreign_protocol_hint(
    std::span<const std::byte> first_bytes) noexcept;

}  // namespace monolock::server
