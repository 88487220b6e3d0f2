#include "server/foreign_protocol.hpp"

#include <algorithm>
#include <array>

namespace monolock::server {

namespace {

struct signature {
    std::string_view start;
    std::string_view hint;
};

constexpr std::string_view http = "an HTTP request came to the lock port";

constexpr std::array<signature, 10> signatures{{
    {"GET ", http},
    {"PUT ", http},
    {"HEAD ", http},
    {"POST ", http},
    {"DELETE ", http},
    {"OPTIONS ", http},
    {"PRI * HTTP/2", http},
    {"\x16\x03", "a TLS ClientHello came to the lock port, which does not speak TLS"},
    {"PROXY ", "a PROXY protocol header came to the lock port, which does not take one"},
    {"\r\n\r\n", "a PROXY protocol header came to the lock port, which does not take one"},
}};

}  // namespace

std::optional<std::string_view> foreign_protocol_hint(
    std::span<const std::byte> first_bytes) noexcept {
    const std::string_view text{reinterpret_cast<const char*>(first_bytes.data()),
                                first_bytes.size()};
    const auto* const found = std::ranges::find_if(
        signatures, [&](const signature& known) { return text.starts_with(known.start); });
    if (found == signatures.end()) {
        return std::nullopt;
    }
    return found->hint;
}

}  // namespace monolock::server
