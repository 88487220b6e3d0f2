#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"
#include "config/parsed.hpp"

namespace monolock::server {

// What a service manager tells a process by its environment (sd_listen_fds(3), sd_notify(3),
// sd_watchdog_enabled(3)), read and nothing else. `self` is the process that asks. Pure.

// The names of the sockets that were passed to the process, as descriptors from the third on. None
// if there are none, or they are meant for another process; a diagnostic if not each has a name.
[[nodiscard]] config::parsed<std::vector<std::string>> passed_names(
    const config::environment& variables, pid_t self);

// How long the service manager waits for a sign of life, time_limit_max at the most (a timer counts
// in nanoseconds); nothing if it does not.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_patience(
    const config::environment& variables, pid_t self);

// A Unix socket as bind() and connect() take it.
struct unix_name {
    sockaddr_un address{};
    socklen_t size = 0;
};

// NOTIFY_SOCKET's value: an absolute path, or a name in the abstract namespace behind an "@".
// Nothing if it is neither, or too long.
[[nodiscard]] std::optional<unix_name> notify_address(std::string_view text);

}  // namespace monolock::server
