#pragma once

#include <prometheus/collectable.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/process_metrics.hpp"
#include "server/shard.hpp"

namespace monolock::server {

// What one of several servers counts besides (docs/high-availability.md).
struct failover_counts {
    bool active = false;
    std::int64_t term = 0;  // zero: none
    std::uint64_t etcd_errors = 0;
    std::uint64_t failovers = 0;
    std::uint64_t leases_uncovered = 0;
};

// What is counted outside the shards.
struct outside_counts {
    std::uint64_t tls_handshake_errors = 0;
    std::uint64_t acl_denials = 0;
    std::uint64_t audit_lost_events = 0;
    std::uint64_t reload_failures_tls = 0;
    std::uint64_t reload_failures_acl = 0;
    std::uint64_t reload_failures_audit = 0;
    std::optional<failover_counts> failover{};  // absent: this server is the only one
};

// The server's metrics (docs/operating.md), added up over the shards when they are asked for. Any
// thread may ask once the list of shards is complete; no shard is asked for anything, so a stalled
// one does not matter. No label holds text from outside.
class metrics final : public prometheus::Collectable {
public:
    // The surroundings must outlive this; `outside` is called in each Collect().
    metrics(const shard_surroundings& around, std::function<outside_counts()> outside)
        : around_{&around}, outside_{std::move(outside)} {}

    [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

    // The same in the text format of Prometheus, version 0.0.4.
    [[nodiscard]] std::string to_text() const;

private:
    const shard_surroundings* around_;
    std::function<outside_counts()> outside_;
    process_metrics process_;
};

}  // namespace monolock::server
