#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "config/server_config.hpp"
#include "core/time.hpp"
#include "server/descriptor_budget.hpp"
#include "server/failover/coordinator.hpp"

// What follows from the configuration.
namespace monolock::server {

[[nodiscard]] unsigned shard_count(const config::server_config& configuration);

// What closing the sessions may take once grants have stopped: the shards' own deadlines end what
// lingers.
[[nodiscard]] core::nanoseconds closing_time_max(const config::server_config& configuration);

// What a call to etcd may take: an eighth of a TTL, and a quarter of the I/O timeout at most, since
// four of them are made when the server leaves.
[[nodiscard]] core::nanoseconds etcd_call_time_max(const config::server_config& configuration);

// What a resignation may take: four calls to etcd, one after the other (a renewal under way, the
// resignation, the same again, and the lease), and a busy machine. Zero without etcd.
[[nodiscard]] core::nanoseconds resigning_time_max(const config::server_config& configuration);

// What the shutdown may take: the delay, then what closing the sessions, the resignation and the
// audit log's end bear, and some time for a busy machine.
[[nodiscard]] core::nanoseconds shutdown_time_max(const config::server_config& configuration);

// The descriptors that a server which is one of several will open when it becomes active, and for
// its calls to etcd. Zero without etcd.
[[nodiscard]] std::uint64_t descriptors_later(const config::server_config& configuration);

// A quarter of the reserve for each HTTP listener: so much is left for the files that a reload
// opens.
[[nodiscard]] std::size_t http_connections_max(const descriptor_budget& budget);

// What the others call this server: what -advertise says, else the machine's name and the port.
[[nodiscard]] std::string name_among_servers(const config::server_config& configuration);

[[nodiscard]] coordinator::settings coordination_settings(
    const config::server_config& configuration);

}  // namespace monolock::server
