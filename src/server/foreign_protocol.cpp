#include "server/foreign_protocol.hpp"

#include <array>

namespace monolock::server {

namespace {

struct signature {
    std::string_view start;
    foreign_protocol what;
};

constexpr std::array<signature, 10> signatures{{
    {.start = "GET ", .what = foreign_protocol::http},
    {.start = "PUT ", .what = foreign_protocol::http},
    {.start = "HEAD ", .what = foreign_protocol::http},
    {.start = "POST ", .what = foreign_protocol::http},
    {.start = "DELETE ", .what = foreign_protocol::http},
    {.start = "OPTIONS ", .what = foreign_protocol::http},
    {.start = "PRI * HTTP/2", .what = foreign_protocol::http},
    {.start = "\x16\x03", .what = foreign_protocol::tls},
    {.start = "PROXY ", .what = foreign_protocol::proxy_header},
    {.start = "\r\n\r\n", .what = foreign_protocol::proxy_header},
}};

// An ACQUIRE of version 1.
constexpr std::string_view plain_start = "\x01\x01";

std::optional<foreign_protocol> guess(std::string_view text) noexcept {
    for (const signature& known : signatures) {
        if (text.starts_with(known.start)) {
            return known.what;
        }
    }
    return std::nullopt;
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<foreign_protocol> guess_foreign_to_plain(
    std::span<const std::byte> first_bytes) noexcept {
    return guess(text_of(first_bytes));
}

std::optional<foreign_protocol> guess_foreign_to_tls(
    std::span<const std::byte> first_bytes) noexcept {
    const std::string_view text = text_of(first_bytes);
    if (text.starts_with(plain_start)) {
        return foreign_protocol::plain_claim;
    }
    const auto what = guess(text);
    return what == foreign_protocol::tls ? std::nullopt : what;
}

std::string_view hint(foreign_protocol what) noexcept {
    switch (what) {
        case foreign_protocol::http:
            return "an HTTP request came to the lock port";
        case foreign_protocol::tls:
            return "a TLS ClientHello came to the lock port, which speaks plain TCP";
        case foreign_protocol::proxy_header:
            return "a PROXY protocol header came to the lock port, which takes none";
        case foreign_protocol::plain_claim:
            return "a client without TLS came to the lock port, which speaks TLS";
    }
    return "?";
}

}  // namespace monolock::server
