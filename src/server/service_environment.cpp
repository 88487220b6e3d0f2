#include "server/service_environment.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "config/number.hpp"
#include "config/server_config.hpp"

namespace monolock::server {

namespace {

std::string_view value_of(const config::environment& variables, const char* name) {
    const char* const value = variables(name);
    return value == nullptr ? std::string_view{} : value;
}

// Separated by colons; a name has none.
std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(':'), list.size());
        names.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return names;
}

}  // namespace

config::parsed<std::vector<std::string>> passed_names(const config::environment& variables,
                                                      pid_t self) {
    if (value_of(variables, "LISTEN_PID") != std::to_string(self)) {
        return std::vector<std::string>{};
    }
    std::vector<std::string> names = split(value_of(variables, "LISTEN_FDNAMES"));
    if (value_of(variables, "LISTEN_FDS") != std::to_string(names.size())) {
        return config::diagnostic{"LISTEN_FDS and LISTEN_FDNAMES do not fit together"};
    }
    return names;
}

// WATCHDOG_PID names the process that is watched, where that may not be this one.
std::optional<std::chrono::microseconds> watchdog_patience(const config::environment& variables,
                                                           pid_t self) {
    const std::string_view watched = value_of(variables, "WATCHDOG_PID");
    const auto patience = config::parse_number<std::int64_t>(value_of(variables, "WATCHDOG_USEC"));
    if (!patience || *patience <= 0 || (!watched.empty() && watched != std::to_string(self))) {
        return std::nullopt;
    }
    return std::min<std::chrono::microseconds>(std::chrono::microseconds{*patience},
                                               config::time_limit_max);
}

std::optional<unix_name> notify_address(std::string_view text) {
    unix_name made;
    if ((!text.starts_with('/') && !text.starts_with('@')) ||
        text.size() >= sizeof made.address.sun_path) {
        return std::nullopt;
    }
    made.address.sun_family = AF_UNIX;
    std::copy(text.begin(), text.end(), made.address.sun_path);
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
    if (text.starts_with('@')) {
        made.address.sun_path[0] = '\0';  // the abstract namespace
    }
    return made;
}

}  // namespace monolock::server
