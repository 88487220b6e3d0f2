#include "client/endpoint.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "monolock/error.hpp"

namespace monolock::detail {

namespace {

endpoint unix_endpoint(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
    endpoint result;
    std::memcpy(&result.storage, &address, sizeof address);
    result.size = sizeof address;
    return result;
}

bool same(const endpoint& left, const endpoint& right) {
    return left.size == right.size && std::memcmp(&left.storage, &right.storage, left.size) == 0;
}

// getaddrinfo with its result as values. `flags` decides whether it may block.
int look_up(const config::tcp_address& where, int flags, std::vector<endpoint>& out) {
    addrinfo hints{};
    hints.ai_flags = flags | AI_NUMERICSERV;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int verdict =
        ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
    if (verdict != 0) {
        return verdict;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{list, &::freeaddrinfo};
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
        if (entry->ai_addrlen > sizeof(sockaddr_storage)) {
            continue;
        }
        endpoint found;
        std::memcpy(&found.storage, entry->ai_addr, entry->ai_addrlen);
        found.size = entry->ai_addrlen;
        if (std::none_of(out.begin(), out.end(),
                         [&](const endpoint& known) { return same(known, found); })) {
            out.push_back(found);
        }
    }
    return 0;
}

}  // namespace

std::optional<std::vector<endpoint>> numeric_endpoints(const config::address& where) {
    if (const auto* const local = std::get_if<config::unix_address>(&where)) {
        return std::vector{unix_endpoint(local->path)};
    }
    const auto& tcp = std::get<config::tcp_address>(where);
    std::vector<endpoint> found;
    if (tcp.host.empty()) {
        static_cast<void>(look_up({.host = "127.0.0.1", .port = tcp.port}, AI_NUMERICHOST, found));
        static_cast<void>(look_up({.host = "::1", .port = tcp.port}, AI_NUMERICHOST, found));
        return found;
    }
    if (look_up(tcp, AI_NUMERICHOST, found) != 0) {
        return std::nullopt;
    }
    return found;
}

resolution resolve(const config::tcp_address& where) {
    resolution result;
    const int verdict = look_up(where, 0, result.endpoints);
    if (verdict == 0 && !result.endpoints.empty()) {
        return result;
    }
    result.detail = where.host;
    if (verdict == EAI_SYSTEM) {
        result.failed = {errno, std::system_category()};
    } else if (verdict == EAI_NONAME || verdict == EAI_NODATA || verdict == 0) {
        result.failed = make_error_code(errc::host_not_found);
    } else {
        result.failed = make_error_code(errc::resolve_failed);
        result.detail += std::string{": "} + ::gai_strerror(verdict);
    }
    return result;
}

std::optional<endpoint> parse_local_endpoint(const std::string& text) {
    auto where = config::parse_address(text);
    if (!where) {
        where = config::parse_address(text + ":0");  // without a port
    }
    if (!where || !std::holds_alternative<config::tcp_address>(*where) ||
        std::get<config::tcp_address>(*where).host.empty()) {
        return std::nullopt;
    }
    const auto found = numeric_endpoints(*where);
    if (!found || found->empty()) {
        return std::nullopt;
    }
    return found->front();
}

}  // namespace monolock::detail
