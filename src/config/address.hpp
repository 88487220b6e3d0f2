#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/parsed.hpp"

namespace monolock::config {

// Where a server listens or a client connects, as people write it. Parsing resolves no name: a host
// is only text here. Needs nothing but the standard library and inet_pton; the client library
// shares it.

// The host is a name or an IP literal, an IPv6 one without its brackets; empty as in ":7070", which
// is every interface to a server and the own machine to a client.
struct tcp_address {
    std::string host;
    std::uint16_t port = 0;  // 0: the kernel chooses; only a server can want that

    friend bool operator==(const tcp_address&, const tcp_address&) = default;
};

struct unix_address {
    std::string path;  // 1 to unix_path_bytes_max bytes, no NUL

    friend bool operator==(const unix_address&, const unix_address&) = default;
};

using address = std::variant<tcp_address, unix_address>;

// What sockaddr_un holds on Linux beside the final NUL.
inline constexpr std::size_t unix_path_bytes_max = 107;

// "host:port", ":port", "[::1]:port", "unix:/path". An IPv6 address without brackets is refused,
// since nobody can tell where it ends and its port begins.
[[nodiscard]] parsed<address> parse_address(std::string_view text);

// More servers than anybody coordinates, and few enough that each has time to answer.
inline constexpr std::size_t address_list_max = 16;

// One address, or several with commas between them: "a:7070,b:7070". A comma always separates, so a
// path that holds one cannot be written here. No blank stands beside a comma, and no address comes
// twice: either is a slip that would show only once the other server is needed. The diagnostic says
// which address is meant where there are several.
[[nodiscard]] parsed<std::vector<address>> parse_address_list(std::string_view text);

// The text that parses to the same address.
[[nodiscard]] std::string to_string(const address& where);

}  // namespace monolock::config
