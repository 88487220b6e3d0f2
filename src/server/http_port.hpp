#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "config/address.hpp"
#include "server/http/http_server.hpp"
#include "server/listener.hpp"

namespace monolock::server {

// The sockets of an address and the HTTP that is served on them, from the construction to the end.
class http_port {
public:
    // Throws std::runtime_error as the listener does. The mode is that of a Unix socket's file.
    http_port(loop& on, const config::address& where, http::service what,
              std::optional<mode_t> unix_mode = {});

    void connections_max(std::size_t count) noexcept { serving_.connections_max(count); }

    // As they were bound, separated by commas.
    [[nodiscard]] std::string addresses() const;
    // Whether nobody but this machine can reach it.
    [[nodiscard]] bool is_local() const;

    // See listener.
    void remove_file() noexcept { listener_.remove_file(); }

private:
    listener listener_;
    http::http_server serving_;
};

}  // namespace monolock::server
