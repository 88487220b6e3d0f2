#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "config/address.hpp"

namespace monolock::detail {

// A socket address that connect() and bind() take.
struct endpoint {
    sockaddr_storage storage{};
    socklen_t size = 0;

    [[nodiscard]] int family() const noexcept { return storage.ss_family; }
    [[nodiscard]] const sockaddr* data() const noexcept {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

// What a name came to: endpoints in the order to try them, or why there are none.
struct resolution {
    std::vector<endpoint> endpoints;
    std::error_code failed;
    std::string detail;
};

// The endpoints of an address that needs no resolver: a path, a numeric host, no host (this
// machine, over IPv4 and then IPv6). Nothing if the host is a name.
[[nodiscard]] std::optional<std::vector<endpoint>> numeric_endpoints(const config::address& where);

// Asks the system's resolver. Blocks for as long as that takes.
[[nodiscard]] resolution resolve(const config::tcp_address& where);

// A local end as client_options::local_address spells it. Nothing if it is not numeric.
[[nodiscard]] std::optional<endpoint> parse_local_endpoint(const std::string& text);

}  // namespace monolock::detail
