#include "server/peer_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "config/number.hpp"

namespace monolock::server {

namespace {

constexpr std::array<unsigned char, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

bool is_mapped(const unsigned char* ipv6) noexcept {
    return std::memcmp(ipv6, mapped_prefix.data(), mapped_prefix.size()) == 0;
}

struct local_peer {
    pid_t pid;
    uid_t uid;
};

}  // namespace

peer_address peer_address::of(int descriptor, const sockaddr_storage& from) noexcept {
    peer_address peer;
    if (from.ss_family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, &from, sizeof address);
        std::memcpy(peer.bytes_.data(), &address.sin_addr, sizeof address.sin_addr);
        peer.port_ = ntohs(address.sin_port);
        peer.kind_ = kind::ipv4;
    } else if (from.ss_family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, &from, sizeof address);
        const unsigned char* const bytes = address.sin6_addr.s6_addr;
        peer.port_ = ntohs(address.sin6_port);
        if (is_mapped(bytes)) {
            std::memcpy(peer.bytes_.data(), bytes + mapped_prefix.size(), sizeof(in_addr));
            peer.kind_ = kind::ipv4;
        } else {
            std::memcpy(peer.bytes_.data(), bytes, sizeof(in6_addr));
            peer.kind_ = kind::ipv6;
        }
    } else if (from.ss_family == AF_UNIX) {
        ucred credentials{};
        socklen_t size = sizeof credentials;
        if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
            const local_peer local{.pid = credentials.pid, .uid = credentials.uid};
            std::memcpy(peer.bytes_.data(), &local, sizeof local);
            peer.kind_ = kind::local;
        }
    }
    return peer;
}

std::string peer_address::to_string() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    switch (kind_) {
        case kind::unknown:
            return "unknown";
        case kind::ipv4:
            ::inet_ntop(AF_INET, bytes_.data(), text.data(), text.size());
            return std::string{text.data()} + ":" + std::to_string(port_);
        case kind::ipv6:
            ::inet_ntop(AF_INET6, bytes_.data(), text.data(), text.size());
            return "[" + std::string{text.data()} + "]:" + std::to_string(port_);
        case kind::local: {
            local_peer local{};
            std::memcpy(&local, bytes_.data(), sizeof local);
            return "unix:pid=" + std::to_string(local.pid) + ",uid=" + std::to_string(local.uid);
        }
    }
    return "unknown";
}

std::optional<peer_address> peer_address::parse(std::string_view text) {
    constexpr std::string_view local_begin = "unix:pid=";
    constexpr std::string_view local_middle = ",uid=";
    peer_address peer;
    if (text.starts_with(local_begin)) {
        const std::size_t middle = text.find(local_middle);
        if (middle == std::string_view::npos) {
            return std::nullopt;
        }
        const auto pid = config::parse_number<pid_t>(
            text.substr(local_begin.size(), middle - local_begin.size()));
        const auto uid = config::parse_number<uid_t>(text.substr(middle + local_middle.size()));
        if (!pid || !uid) {
            return std::nullopt;
        }
        const local_peer local{.pid = *pid, .uid = *uid};
        std::memcpy(peer.bytes_.data(), &local, sizeof local);
        peer.kind_ = kind::local;
    } else {
        const std::size_t colon = text.rfind(':');
        const auto port = colon == std::string_view::npos
                              ? std::nullopt
                              : config::parse_number<std::uint16_t>(text.substr(colon + 1));
        if (!port) {
            return std::nullopt;
        }
        peer.port_ = *port;
        std::string host{text.substr(0, colon)};
        const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
        if (bracketed) {
            host = host.substr(1, host.size() - 2);
        }
        if (::inet_pton(bracketed ? AF_INET6 : AF_INET, host.c_str(), peer.bytes_.data()) != 1) {
            return std::nullopt;
        }
        peer.kind_ = bracketed ? kind::ipv6 : kind::ipv4;
        if (bracketed && is_mapped(peer.bytes_.data())) {
            return std::nullopt;  // it prints as IPv4
        }
    }
    if (peer.to_string() != text) {
        return std::nullopt;  // written another way: 127.0.0.1:080
    }
    return peer;
}

}  // namespace monolock::server
