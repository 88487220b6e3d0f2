#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace monolock::cli {

// What `run` says beside "not acquired": who has the lock, since when, and, if a connection of this
// process waits for it, in which place. Asks the admin address until `give_up_at` at the latest, or
// until the interrupt descriptor is readable. Nothing if it cannot be told, for whatever reason:
// what failed is the acquisition, and that is said anyway.
[[nodiscard]] std::optional<std::string> who_has_it(
    const std::string& admin, const std::string& lock_name,
    std::chrono::steady_clock::time_point give_up_at, int interrupt) noexcept;

// The names by which a server that sees them directly knows the connections of this process, as in
// `remote_addr`. Not those behind a proxy or in another namespace of processes.
[[nodiscard]] std::vector<std::string> own_names();

}  // namespace monolock::cli
