#pragma once

#include "config/server_config.hpp"

namespace monolock::server {

// How the server ended, as an exit status.
enum class exit_status : int { ok = 0, failed = 1, usage = 2 };

// Serves until a signal ends it (docs/protocol.md, "Shutdown"). Throws std::runtime_error, with one
// line that names the address or the resource and why, if it cannot start. Takes over SIGTERM,
// SIGINT and SIGHUP, unblocks them, ignores SIGPIPE and SIGXFSZ. A second SIGTERM or SIGINT ends
// the process on the spot with status 1, and so does a shard that has stalled when the shutdown has
// waited for it.
[[nodiscard]] exit_status run(const config::server_config& configuration);

}  // namespace monolock::server
