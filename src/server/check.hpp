#pragma once

#include <string>

#include "config/parsed.hpp"
#include "config/server_config.hpp"

namespace monolock::server {

// Reads and checks every file that is configured as a start would, and does nothing else: a few
// lines for people about what a server would go by, or everything that would keep it from starting.
[[nodiscard]] config::checked<std::string> check(const config::server_config& configuration);

}  // namespace monolock::server
