#pragma once

#include <string>

#include "server/http/http_server.hpp"
#include "server/listener.hpp"

namespace monolock::server {

// The sockets of an address and the HTTP that is served on them, from the construction to the end.
class http_port {
public:
    http_port(loop& on, listener where, http::service what);

    void connections_max(std::size_t count) noexcept { serving_.connections_max(count); }

    // See listener.
    [[nodiscard]] std::string addresses() const { return listener_.addresses(); }
    // Whether nobody but this machine can reach it.
    [[nodiscard]] bool is_local() const;

    // See listener.
    void remove_file() noexcept { listener_.remove_file(); }

private:
    listener listener_;
    http::http_server serving_;
};

}  // namespace monolock::server
