#include "server/listener.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>

namespace monolock::server {

namespace {

// How often a free port is asked for before several addresses agree on one.
constexpr int port_attempts_max = 32;

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

std::string error_text(int error) {
    return std::generic_category().message(error);
}

std::string refusal(const std::string& address, const std::string& why) {
    return "cannot listen on " + address + ": " + why;
}

[[noreturn]] void fail(const std::string& address, const std::string& why) {
    throw std::runtime_error{refusal(address, why)};
}

address_list look_up(const config::tcp_address& where) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(where.port);
    // An empty host is every interface: one dual-stack socket where the machine has IPv6.
    const char* const host = where.host.empty() ? "::" : where.host.c_str();
    const int failed = ::getaddrinfo(host, port.c_str(), &hints, &found);
    if (failed != 0) {
        fail(config::to_string(where),
             failed == EAI_SYSTEM ? error_text(errno) : ::gai_strerror(failed));
    }
    return {found, &::freeaddrinfo};
}

posix::descriptor open_socket(int family) {
    return posix::descriptor{::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

void set_option(const posix::descriptor& socket, int level, int name, int value) noexcept {
    static_cast<void>(::setsockopt(socket.get(), level, name, &value, sizeof value));
}

bool is_unspecified(const sockaddr_storage& address) noexcept {
    return address.ss_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

void set_port(sockaddr_storage& address, std::uint16_t port) noexcept {
    if (address.ss_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    }
}

// The address that the socket is bound to, as people write it, and its port.
config::tcp_address bound_address(const posix::descriptor& socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    char host[NI_MAXHOST] = "";
    char port[NI_MAXSERV] = "0";
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    return {.host = host, .port = static_cast<std::uint16_t>(std::stoul(port))};
}

// What an empty host means on a machine without IPv6.
config::tcp_address without_ipv6(const config::tcp_address& where) {
    return {.host = "0.0.0.0", .port = where.port};
}

// An error number, or a socket that has the address. SO_REUSEADDR lets a restarted server bind at
// once while old connections are in TIME_WAIT; a second listener on the address is refused all the
// same, which is the point: SO_REUSEPORT would let it in.
int try_bind(const tcp_target& target, posix::descriptor& out) {
    out = open_socket(target.address.ss_family);
    if (!out) {
        return errno;
    }
    set_option(out, SOL_SOCKET, SO_REUSEADDR, 1);
    // Accepted sockets inherit it.
    set_option(out, IPPROTO_TCP, TCP_NODELAY, 1);
    if (target.address.ss_family == AF_INET6) {
        set_option(out, IPPROTO_IPV6, IPV6_V6ONLY, is_unspecified(target.address) ? 0 : 1);
    }
    const auto* const address = reinterpret_cast<const sockaddr*>(&target.address);
    return ::bind(out.get(), address, target.size) == 0 ? 0 : errno;
}

int try_listen(const tcp_target& target, posix::descriptor& out) {
    if (const int error = try_bind(target, out); error != 0) {
        return error;
    }
    return ::listen(out.get(), SOMAXCONN) == 0 ? 0 : errno;
}

bool is_same(const tcp_target& left, const tcp_target& right) noexcept {
    return left.size == right.size && std::memcmp(&left.address, &right.address, left.size) == 0;
}

// Each address once: a name may stand in several lines of /etc/hosts.
std::vector<tcp_target> targets_of(const config::tcp_address& where) {
    std::vector<tcp_target> targets;
    const address_list found = look_up(where);
    for (const addrinfo* info = found.get(); info != nullptr; info = info->ai_next) {
        tcp_target target;
        std::memcpy(&target.address, info->ai_addr, info->ai_addrlen);
        target.size = info->ai_addrlen;
        if (std::none_of(targets.begin(), targets.end(),
                         [&](const tcp_target& known) { return is_same(known, target); })) {
            targets.push_back(target);
        }
    }
    return targets;
}

struct attempt {
    std::vector<listening_socket> sockets;
    std::size_t failed_at = 0;
    int error = 0;  // zero: all listen
};

attempt listen_on_all(std::vector<tcp_target> targets, std::uint16_t port) {
    attempt result;
    for (; result.failed_at < targets.size(); ++result.failed_at) {
        tcp_target& target = targets[result.failed_at];
        set_port(target.address, port);
        posix::descriptor socket;
        result.error = try_listen(target, socket);
        if (result.error != 0) {
            return result;
        }
        const config::tcp_address bound = bound_address(socket);
        port = bound.port;  // with port 0 the first address chooses for the rest
        result.sockets.push_back(
            {.descriptor = std::move(socket), .address = config::to_string(bound)});
    }
    return result;
}

sockaddr_un unix_sockaddr(const std::string& path) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(path.begin(), std::min(path.size(), sizeof address.sun_path - 1), address.sun_path);
    return address;
}

// As people write it, whatever kind of socket it is. An abstract Unix address begins with an @, as
// everywhere else.
std::string inherited_address(const posix::descriptor& socket) {
    sockaddr_un local{};
    socklen_t size = sizeof local;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size);
    if (local.sun_family != AF_UNIX) {
        return config::to_string(bound_address(socket));
    }
    std::string path{local.sun_path,
                     std::min<std::size_t>(size, sizeof local) - offsetof(sockaddr_un, sun_path)};
    if (path.starts_with('\0')) {
        path.front() = '@';
    } else {
        path.resize(std::min(path.find('\0'), path.size()));
    }
    return config::to_string(config::address{config::unix_address{.path = std::move(path)}});
}

// Whoever holds the lock file may replace the socket's file: of two servers that start at once,
// one.
posix::descriptor lock_beside(const config::unix_address& where) {
    const std::string path = where.path + ".lock";
    posix::descriptor lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (!lock) {
        fail(config::to_string(where), "lock file " + path + ": " + error_text(errno));
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        fail(config::to_string(where),
             errno == EWOULDBLOCK ? "another server is using it" : error_text(errno));
    }
    return lock;
}

// Whether there is a socket's file.
bool is_there(const config::unix_address& where) {
    struct stat status {};
    if (::lstat(where.path.c_str(), &status) != 0) {
        if (errno != ENOENT) {
            fail(config::to_string(where), error_text(errno));
        }
        return false;
    }
    if (!S_ISSOCK(status.st_mode)) {
        fail(config::to_string(where), "the path exists and is not a socket");
    }
    return true;
}

// Removes a socket's file that nobody listens on.
void remove_stale_file(const config::unix_address& where) {
    if (!is_there(where)) {
        return;
    }
    const posix::descriptor probe = open_socket(AF_UNIX);
    const sockaddr_un address = unix_sockaddr(where.path);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
        errno != ECONNREFUSED) {
        fail(config::to_string(where), "another program is using it");
    }
    if (::unlink(where.path.c_str()) != 0) {
        fail(config::to_string(where), "stale socket file: " + error_text(errno));
    }
}

std::optional<obstacle> obstacle_of_tcp(const config::tcp_address& where,
                                        const std::vector<tcp_target>& targets) {
    for (const tcp_target& target : targets) {
        posix::descriptor socket;
        const int error = try_bind(target, socket);
        if (where.host.empty() && error == EAFNOSUPPORT) {
            const config::tcp_address other = without_ipv6(where);
            return obstacle_of_tcp(other, targets_of(other));
        }
        if (error != 0) {
            return obstacle{.what = refusal(config::to_string(where), error_text(error)),
                            .may_pass = error == EADDRINUSE};
        }
    }
    return std::nullopt;
}

// As the lock file and the socket's file will need it.
void check_folder(const config::unix_address& where) {
    const std::string folder = std::filesystem::path{where.path}.parent_path();
    if (::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK | X_OK, AT_EACCESS) !=
        0) {
        fail(config::to_string(where), folder + ": " + error_text(errno));
    }
}

}  // namespace

resolved_address resolve(const config::address& where) {
    const auto* const tcp = std::get_if<config::tcp_address>(&where);
    return {.as_given = where,
            .targets = tcp != nullptr ? targets_of(*tcp) : std::vector<tcp_target>{}};
}

std::optional<obstacle> find_obstacle(const resolved_address& where) try {
    if (const auto* const tcp = std::get_if<config::tcp_address>(&where.as_given)) {
        return obstacle_of_tcp(*tcp, where.targets);
    }
    const auto& file = std::get<config::unix_address>(where.as_given);
    check_folder(file);
    static_cast<void>(is_there(file));
    return std::nullopt;
} catch (const std::runtime_error& error) {
    return obstacle{.what = error.what(), .may_pass = false};
}

posix::descriptor duplicate(const listening_socket& socket) {
    posix::descriptor made{::fcntl(socket.descriptor.get(), F_DUPFD_CLOEXEC, 0)};
    if (!made) {
        throw std::system_error{errno, std::generic_category(), "listening socket"};
    }
    return made;
}

listener::listener(const resolved_address& where, std::optional<mode_t> unix_mode) {
    if (const auto* const tcp = std::get_if<config::tcp_address>(&where.as_given)) {
        listen_tcp(*tcp, where.targets);
    } else {
        listen_unix(std::get<config::unix_address>(where.as_given), unix_mode);
    }
}

listener::listener(std::vector<posix::descriptor> inherited) {
    for (posix::descriptor& each : inherited) {
        std::string address = inherited_address(each);
        set_option(each, IPPROTO_TCP, TCP_NODELAY, 1);  // on a Unix socket it changes nothing
        sockets_.push_back({.descriptor = std::move(each), .address = std::move(address)});
    }
}

listener::listener(listener&& other) noexcept
    : sockets_{std::move(other.sockets_)},
      unix_path_{std::exchange(other.unix_path_, {})},
      unix_device_{other.unix_device_},
      unix_inode_{other.unix_inode_},
      unix_lock_{std::move(other.unix_lock_)} {}

void listener::listen_tcp(const config::tcp_address& where,
                          const std::vector<tcp_target>& targets) {
    for (int attempts = 1;; ++attempts) {
        attempt made = listen_on_all(targets, where.port);
        if (made.error == 0) {
            sockets_ = std::move(made.sockets);
            return;
        }
        if (where.host.empty() && made.error == EAFNOSUPPORT) {
            const config::tcp_address other = without_ipv6(where);
            listen_tcp(other, targets_of(other));
            return;
        }
        const bool other_port_may_do =
            where.port == 0 && made.error == EADDRINUSE && made.failed_at > 0;
        if (!other_port_may_do || attempts == port_attempts_max) {
            fail(config::to_string(where), error_text(made.error));
        }
    }
}

void listener::listen_unix(const config::unix_address& where, std::optional<mode_t> mode) {
    unix_lock_ = lock_beside(where);
    remove_stale_file(where);
    posix::descriptor socket = open_socket(AF_UNIX);
    const sockaddr_un address = unix_sockaddr(where.path);
    if (!socket ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        fail(config::to_string(where), error_text(errno));
    }
    unix_path_ = where.path;
    struct stat status {};
    if (::lstat(where.path.c_str(), &status) == 0) {
        unix_device_ = status.st_dev;
        unix_inode_ = status.st_ino;
    }
    if ((mode && ::chmod(where.path.c_str(), *mode) != 0) ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
        const int error = errno;
        remove_file();
        fail(config::to_string(where), error_text(error));
    }
    sockets_.push_back(
        {.descriptor = std::move(socket), .address = config::to_string(config::address{where})});
}

std::string listener::addresses() const {
    std::string all;
    for (const listening_socket& socket : sockets_) {
        all += (all.empty() ? "" : ",") + socket.address;
    }
    return all;
}

void listener::close() noexcept {
    sockets_.clear();
    remove_file();
    unix_path_.clear();
    unix_lock_.reset();
}

void listener::remove_file() noexcept {
    // Somebody may have removed our file by hand and another server put its own there.
    struct stat status {};
    if (!unix_path_.empty() && ::lstat(unix_path_.c_str(), &status) == 0 &&
        status.st_dev == unix_device_ && status.st_ino == unix_inode_) {
        ::unlink(unix_path_.c_str());
    }
}

}  // namespace monolock::server
