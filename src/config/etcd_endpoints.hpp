#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.hpp"
#include "config/parsed.hpp"

namespace monolock::config {

enum class endpoint_scheme : std::uint8_t { http, https };

// One member of etcd, where it serves clients. The host is a name of letters, digits, dots, hyphens
// and underscores, or an IP literal, an IPv6 one without its brackets; the port is not 0.
struct etcd_endpoint {
    endpoint_scheme scheme = endpoint_scheme::http;
    tcp_address where;

    friend bool operator==(const etcd_endpoint&, const etcd_endpoint&) = default;
};

// A list "http://host:port,https://[::1]:port": one endpoint at least, none twice, and all of one
// scheme, since a password would otherwise travel in the clear to some of them. No user, path or
// query, and no blanks.
[[nodiscard]] parsed<std::vector<etcd_endpoint>> parse_etcd_endpoints(std::string_view text);

// The URL that parses to the same endpoint.
[[nodiscard]] std::string to_string(const etcd_endpoint& endpoint);
// With commas, as parse_etcd_endpoints takes them.
[[nodiscard]] std::string to_string(const std::vector<etcd_endpoint>& endpoints);

}  // namespace monolock::config
