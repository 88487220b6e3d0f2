#include "server/http_port.hpp"

#include <algorithm>
#include <utility>

namespace monolock::server {

http_port::http_port(loop& on, listener where, http::service what)
    : listener_{std::move(where)}, serving_{on, std::move(what)} {
    for (const listening_socket& socket : listener_.sockets()) {
        serving_.listen(duplicate(socket));
    }
}

bool http_port::is_local() const {
    const auto& sockets = listener_.sockets();
    return std::all_of(sockets.begin(), sockets.end(), [](const listening_socket& socket) {
        return socket.is_unix() || socket.address.starts_with("127.") ||
               socket.address.starts_with("[::1]:");
    });
}

}  // namespace monolock::server
