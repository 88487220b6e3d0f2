#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/records.hpp"
#include "coordination/role.hpp"

namespace monolock::server {

// What the log says of a grant delay, with etcd and without.
inline constexpr std::string_view grant_delay_begins = "claims queue, and none is granted yet";
inline constexpr std::string_view grant_delay_over = "the grant delay is over";

// What people are told of a server's role.
struct role_status {
    coordination::role role = coordination::role::standby;
    std::optional<coordination::term> term{};  // while it has the key
    std::string active_server{};               // who has it; empty: nobody, or not known
    bool holder_has_renewed = false;           // until then that one may give it up again
    std::chrono::milliseconds opens_in{0};     // while waiting: for so long at least
    bool delays_grants = false;                // active, and claims only queue yet
    std::uint64_t failovers = 0;               // times it became active
    std::uint64_t etcd_errors = 0;
    std::string last_loss{};   // of the key, one line; empty: never lost
    std::string last_error{};  // why etcd fails, one line; empty: it does not
};

}  // namespace monolock::server
