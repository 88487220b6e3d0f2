#include "server/http_port.hpp"

#include <algorithm>
#include <utility>

namespace monolock::server {

http_port::http_port(loop& on, const config::address& where, http::service what,
                     std::optional<mode_t> unix_mode)
    : listener_{where, unix_mode}, serving_{on, std::move(what)} {
    for (const listening_socket& socket : listener_.sockets()) {
        serving_.listen(duplicate(socket));
    }
}

std::string http_port::addresses() const {
    std::string all;
    for (const listening_socket& socket : listener_.sockets()) {
        all += (all.empty() ? "" : ",") + socket.address;
    }
    return all;
}

bool http_port::is_local() const {
    const auto& sockets = listener_.sockets();
    return std::all_of(sockets.begin(), sockets.end(), [](const listening_socket& socket) {
        return socket.address.starts_with("unix:") || socket.address.starts_with("127.") ||
               socket.address.starts_with("[::1]:");
    });
}

}  // namespace monolock::server
