#include "load/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>

namespace monolock::bench {
namespace {

constexpr std::uint32_t loopback_net = 0x7F000000;
constexpr std::uint32_t loopback_mask = 0xFF000000;

void set_option(int fd, int level, int option, int value, const char* name) {
    if (::setsockopt(fd, level, option, &value, sizeof value) != 0) {
        throw_errno(name);
    }
}

// The port is left to connect(), which may then choose one that is in use towards another server.
void bind_source(int fd, const endpoint& server, std::size_t serial) {
    if ((ntohl(server.address.sin_addr.s_addr) & loopback_mask) != loopback_net) {
        return;
    }
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "IP_BIND_ADDRESS_NO_PORT");
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr =
        htonl(loopback_net + 1 + static_cast<std::uint32_t>(serial % source_addresses));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&source), sizeof source) != 0) {
        throw_errno("bind to a loopback source address");
    }
}

unique_fd make_socket(const endpoint& server, std::size_t serial, int flags) {
    unique_fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)};
    if (fd.get() < 0) {
        throw_errno("socket");
    }
    set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    bind_source(fd.get(), server, serial);
    return fd;
}

bool connect(int fd, const endpoint& server) {
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&server.address),
                     sizeof server.address) == 0;
}

}  // namespace

void throw_errno(const std::string& what) {
    throw measurement_error(what + ": " + std::generic_category().message(errno));
}

void unique_fd::reset(int fd) noexcept {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    fd_ = fd;
}

endpoint parse_endpoint(const std::string& text) {
    const auto colon = text.rfind(':');
    endpoint result;
    result.address.sin_family = AF_INET;
    std::uint16_t port = 0;
    if (colon == std::string::npos ||
        ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &result.address.sin_addr) != 1 ||
        std::from_chars(text.data() + colon + 1, text.data() + text.size(), port).ptr !=
            text.data() + text.size()) {
        throw measurement_error("not an IPv4 address with a port: " + text);
    }
    result.address.sin_port = htons(port);
    return result;
}

unique_fd connect_to(const endpoint& server, std::size_t serial) {
    auto fd = make_socket(server, serial, 0);
    if (!connect(fd.get(), server)) {
        throw_errno("connect");
    }
    return fd;
}

unique_fd begin_to_connect(const endpoint& server, std::size_t serial) {
    auto fd = make_socket(server, serial, SOCK_NONBLOCK);
    // A refusal is kept for the poller, whether it came at once or comes later.
    if (!connect(fd.get(), server) && errno != EINPROGRESS && errno != ECONNREFUSED) {
        throw_errno("connect");
    }
    return fd;
}

void send_all(int fd, std::span<const std::byte> bytes) {
    // The frames of a client are far smaller than a socket buffer: a short write is a fault.
    if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
        throw_errno("send");
    }
}

std::size_t raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        throw_errno("getrlimit");
    }
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        throw_errno("setrlimit");
    }
    return limit.rlim_cur;
}

}  // namespace monolock::bench
