#pragma once

#include <string>

#include "config/parsed.hpp"
#include "etcd/messages/calls.hpp"

namespace monolock::etcd {

// Reads the file that names a user of etcd (parse_user_file). The diagnostic repeats neither its
// path nor anything of it.
[[nodiscard]] config::parsed<credentials> read_user_file(const std::string& path);

}  // namespace monolock::etcd
