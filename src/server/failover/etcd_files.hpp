#pragma once

#include "config/parsed.hpp"
#include "config/server_config.hpp"

namespace monolock::server {

// Reads the files that calls to etcd will need: the CA's certificates, the own certificate and its
// key, which must belong to it, the user's name and password. All that is wrong with them, each
// line with its file; nothing if they can be used or none is configured. Whether the own
// certificate is valid now is left to etcd and its clock. The calls read them anew: what is wrong
// later fails them, and nothing else.
[[nodiscard]] config::diagnostics check_etcd_files(const config::server_config& configuration);

}  // namespace monolock::server
