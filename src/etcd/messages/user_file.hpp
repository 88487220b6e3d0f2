#pragma once

#include <cstddef>
#include <string_view>

#include "config/parsed.hpp"
#include "etcd/messages/calls.hpp"

namespace monolock::etcd {

inline constexpr std::size_t user_file_bytes_max = 4096;

// The content of the file that names a user of etcd: one line `user:password`, with or without a
// newline at its end. The password begins behind the first colon and may hold more of them; it is
// not empty. The diagnostic repeats nothing of it.
[[nodiscard]] config::parsed<credentials> parse_user_file(std::string_view text);

}  // namespace monolock::etcd
