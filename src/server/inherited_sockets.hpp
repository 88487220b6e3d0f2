#pragma once

#include <string>
#include <vector>

#include "config/server_config.hpp"
#include "posix/descriptor.hpp"

namespace monolock::server {

// Listening sockets that a service manager opened and passed to this process (sd_listen_fds(3)), by
// what they are for. Empty: none for that, and the configuration says where to listen.
struct inherited_sockets {
    std::vector<posix::descriptor> listen;
    std::vector<posix::descriptor> ops;
    std::vector<posix::descriptor> admin;
};

// Takes them over, close-on-exec and non-blocking from now on. None without a service manager, or
// when the environment tells of sockets for another process. To be called once, before descriptors
// are opened. Throws std::runtime_error with one line when they cannot be used as they are.
[[nodiscard]] inherited_sockets take_inherited_sockets(const config::server_config& configuration);

// A descriptor and its name, FileDescriptorName= of its socket unit.
struct named_descriptor {
    std::string name;
    posix::descriptor descriptor;
};

// The part of it that judges: the names must be "listen", "ops" or "admin", several of a name being
// one port with several addresses, the descriptors listening stream sockets over IP or Unix, and
// the configuration must not name an address for the same thing.
[[nodiscard]] inherited_sockets sorted(std::vector<named_descriptor> taken,
                                       const config::server_config& configuration);

}  // namespace monolock::server
