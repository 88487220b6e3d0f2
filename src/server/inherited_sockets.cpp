#include "server/inherited_sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/service_environment.hpp"
#include "telemetry/escape.hpp"

namespace monolock::server {

namespace {

constexpr int first_passed = 3;

// What a socket of that name is for, and the flag that says the same.
struct purpose {
    std::string_view name;
    std::string_view flag;
    std::vector<posix::descriptor> inherited_sockets::*sockets;
    std::optional<config::address> config::server_config::*configured;
};

constexpr std::array purposes{
    purpose{"listen", "-listen", &inherited_sockets::listen, &config::server_config::listen},
    purpose{"ops", "-ops-listen", &inherited_sockets::ops, &config::server_config::ops_listen},
    purpose{"admin", "-admin-listen", &inherited_sockets::admin,
            &config::server_config::admin_listen},
};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw std::runtime_error{"the service manager's socket " + telemetry::quoted(name) + ": " +
                             why};
}

const purpose& purpose_of(const std::string& name) {
    for (const purpose& each : purposes) {
        if (each.name == name) {
            return each;
        }
    }
    refuse(name, "FileDescriptorName= must be listen, ops or admin");
}

int option_of(const posix::descriptor& socket, int name) noexcept {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(socket.get(), SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool is_usable(const posix::descriptor& socket) noexcept {
    const int domain = option_of(socket, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX) &&
           option_of(socket, SO_TYPE) == SOCK_STREAM && option_of(socket, SO_ACCEPTCONN) == 1;
}

void set_non_blocking(const posix::descriptor& socket) {
    const int flags = ::fcntl(socket.get(), F_GETFL);
    if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
        throw std::system_error{errno, std::generic_category(), "the service manager's socket"};
    }
}

std::vector<named_descriptor> take() {
    auto names = passed_names(std::getenv, ::getpid());  // NOLINT(concurrency-mt-unsafe)
    if (!names) {
        throw std::runtime_error{names.error().text};
    }
    std::vector<named_descriptor> taken;
    for (std::string& each : *std::move(names)) {
        const int fd = first_passed + static_cast<int>(taken.size());
        ::fcntl(fd, F_SETFD, FD_CLOEXEC);
        taken.push_back({.name = std::move(each), .descriptor = posix::descriptor{fd}});
    }
    return taken;
}

}  // namespace

inherited_sockets sorted(std::vector<named_descriptor> taken,
                         const config::server_config& configuration) {
    inherited_sockets made;
    for (named_descriptor& each : taken) {
        const purpose& is_for = purpose_of(each.name);
        if (!is_usable(each.descriptor)) {
            refuse(each.name, "not a listening stream socket over IP or Unix");
        }
        if (const auto& where = configuration.*is_for.configured) {
            refuse(each.name, std::string{is_for.flag} + " " + config::to_string(*where) +
                                  " is configured as well, and only one of them can be");
        }
        set_non_blocking(each.descriptor);
        (made.*is_for.sockets).push_back(std::move(each.descriptor));
    }
    return made;
}

inherited_sockets take_inherited_sockets(const config::server_config& configuration) {
    return sorted(take(), configuration);
}

}  // namespace monolock::server
