#include "server/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <iterator>
#include <sstream>
#include <utility>

#include "server/metric_families.hpp"

namespace monolock::server {

namespace {

using families = std::vector<prometheus::MetricFamily>;

// The shards' counters added up.
struct totals {
    std::uint64_t sessions = 0;
    std::uint64_t locks_held = 0;
    std::uint64_t waiters = 0;
    std::uint64_t connections_accepted = 0;
    std::uint64_t heartbeats = 0;
    std::array<std::uint64_t, end_reasons.size()> releases{};
    std::array<std::uint64_t, error_codes.size()> errors{};
    telemetry::histogram_reading<claim_bounds.size()> waits;
    telemetry::histogram_reading<claim_bounds.size()> holds;
    telemetry::histogram_reading<handover_bounds.size()> handovers;

    void add(const shard_counters& of) {
        // Two gauges that are read apart may disagree for a moment.
        const std::uint64_t open = of.sessions();
        const std::uint64_t owning = of.locks_held();
        sessions += open;
        locks_held += owning;
        waiters += open > owning ? open - owning : 0;
        connections_accepted += of.connections_accepted();
        heartbeats += of.heartbeats();
        for (std::size_t index = 0; index < end_reasons.size(); ++index) {
            releases[index] += of.releases(end_reasons[index]);
        }
        for (std::size_t index = 0; index < error_codes.size(); ++index) {
            errors[index] += of.errors(index);
        }
        waits += of.waits().read();
        holds += of.holds().read();
        handovers += of.handovers().read();
    }
};

std::string hex(protocol::error_code code) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto value = static_cast<std::uint8_t>(code);
    return {'0', 'x', digits[value >> 4U], digits[value & 0xFU]};
}

void add_claims(families& to, const totals& all) {
    to.push_back(gauge_family("monolock_connections_active", "Open sessions: owners and waiters.",
                              number(all.sessions)));
    to.push_back(
        gauge_family("monolock_locks_held", "Locks that have an owner.", number(all.locks_held)));
    to.push_back(
        gauge_family("monolock_waiters", "Sessions that queue for a lock.", number(all.waiters)));
    to.push_back(
        counter_family("monolock_acquires_total", "Grants of a lock.", number(all.waits.count())));
    prometheus::MetricFamily releases =
        empty_counter_family("monolock_releases_total", "Ends of an ownership, by reason.");
    for (std::size_t index = 0; index < end_reasons.size(); ++index) {
        add_counter(releases, "reason", std::string{core::to_string(end_reasons[index])},
                    number(all.releases[index]));
    }
    to.push_back(std::move(releases));
    to.push_back(
        counter_family("monolock_heartbeats_total", "HEARTBEATs handled.", number(all.heartbeats)));
}

void add_durations(families& to, const totals& all) {
    to.push_back(summary_family("monolock_wait_seconds",
                                "Time from an ACQUIRE to its grant, over every grant.",
                                all.waits.count(), all.waits.sum.count()));
    to.push_back(summary_family("monolock_hold_seconds",
                                "Time from a grant to its end, over every end of an ownership.",
                                all.holds.count(), all.holds.sum.count()));
    to.push_back(histogram_family("monolock_wait_duration_seconds",
                                  "The times of monolock_wait_seconds, in buckets.", claim_bounds,
                                  all.waits));
    to.push_back(histogram_family("monolock_hold_duration_seconds",
                                  "The times of monolock_hold_seconds, in buckets.", claim_bounds,
                                  all.holds));
    to.push_back(histogram_family(
        "monolock_handover_duration_seconds",
        "Time from knowing that an owner is gone to having written the next owner's ACQUIRED.",
        handover_bounds, all.handovers));
}

void add_connections(families& to, const totals& all, std::uint64_t accept_errors,
                     const outside_counts& outside) {
    to.push_back(counter_family("monolock_connections_accepted_total", "Connections accepted.",
                                number(all.connections_accepted)));
    to.push_back(counter_family("monolock_accept_errors_total",
                                "Attempts to accept a connection that failed.",
                                number(accept_errors)));
    to.push_back(counter_family("monolock_tls_handshake_errors_total",
                                "TLS handshakes that failed.",
                                number(outside.tls_handshake_errors)));
    to.push_back(counter_family("monolock_acl_denials_total", "Claims that the ACL refused.",
                                number(outside.acl_denials)));
    prometheus::MetricFamily errors = empty_counter_family(
        "monolock_protocol_errors_total", "ERRORs due to clients, delivered or not, by code.");
    for (std::size_t index = 0; index < error_codes.size(); ++index) {
        add_counter(errors, "code", hex(error_codes[index]), number(all.errors[index]));
    }
    to.push_back(std::move(errors));
}

void add_upkeep(families& to, const outside_counts& outside) {
    to.push_back(counter_family("monolock_audit_lost_events_total",
                                "Audit events that could not be written.",
                                number(outside.audit_lost_events)));
    prometheus::MetricFamily reloads = empty_counter_family(
        "monolock_reload_failures_total", "Reloads that kept the previous state, by part.");
    add_counter(reloads, "part", "tls", number(outside.reload_failures_tls));
    add_counter(reloads, "part", "acl", number(outside.reload_failures_acl));
    add_counter(reloads, "part", "audit", number(outside.reload_failures_audit));
    to.push_back(std::move(reloads));
    prometheus::MetricFamily build =
        gauge_family("monolock_build_info", "The version; always 1.", 1);
    build.metric.front().label.push_back({.name = "version", .value = MONOLOCK_VERSION});
    to.push_back(std::move(build));
}

void add_failover(families& to, const failover_counts& one) {
    to.push_back(gauge_family("monolock_active",
                              "1 if this server is the active one of several, else 0.",
                              one.active ? 1 : 0));
    to.push_back(gauge_family("monolock_term",
                              "The term of this server while it has the key in etcd, else 0.",
                              static_cast<double>(one.term)));
    to.push_back(counter_family("monolock_etcd_errors_total",
                                "Calls to etcd that were not answered, or with an error.",
                                number(one.etcd_errors)));
    to.push_back(counter_family("monolock_failovers_total", "Times that this server became active.",
                                number(one.failovers)));
    to.push_back(counter_family("monolock_leases_uncovered_total",
                                "Grants to leases that are longer than a failover waits.",
                                number(one.leases_uncovered)));
}

}  // namespace

families metrics::Collect() const {
    totals all;
    for (const auto& each : around_->shards) {
        all.add(each->counters());
    }
    const outside_counts outside = outside_();
    families made;
    add_claims(made, all);
    add_durations(made, all);
    add_connections(made, all, around_->accepting.errors.load(), outside);
    add_upkeep(made, outside);
    if (outside.failover) {
        add_failover(made, *outside.failover);
    }
    families process = process_.collect();
    made.insert(made.end(), std::make_move_iterator(process.begin()),
                std::make_move_iterator(process.end()));
    return made;
}

std::string metrics::to_text() const {
    std::ostringstream out;
    prometheus::TextSerializer{}.Serialize(out, Collect());
    return out.str();
}

}  // namespace monolock::server
