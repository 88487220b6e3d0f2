#pragma once

#include <string>
#include <string_view>

#include "config/address.hpp"
#include "config/parsed.hpp"

namespace monolock::tls {

// What the certificate of a server must be for.
struct server_name {
    std::string text;         // a DNS name without a final dot, or an IP address without a zone
    bool is_address = false;  // then only an address in the certificate can match

    friend bool operator==(const server_name&, const server_name&) = default;
};

// The name that a client which connects to `where` expects: `given` if it is not empty, else the
// host of the address. Refused if that is no name, since a check against nothing checks nothing: a
// path, no host, a pattern, or letters outside ASCII (a certificate holds the xn-- form).
[[nodiscard]] config::parsed<server_name> expected_server_name(const config::address& where,
                                                               std::string_view given);

}  // namespace monolock::tls
