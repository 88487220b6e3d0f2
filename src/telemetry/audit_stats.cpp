#include "telemetry/audit_stats.hpp"

#include <algorithm>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::telemetry {

namespace {

void append_field(std::string& out, std::string_view key, std::uint64_t value) {
    out += '"';
    out += key;
    out += "\":";
    out += std::to_string(value);
}

void append_times(std::string& out, std::string_view key, const duration_histogram& times) {
    const auto field = [&out](std::string_view name, duration_histogram::milliseconds value) {
        append_field(out, name, static_cast<std::uint64_t>(value.count()));
    };
    out += ",\"";
    out += key;
    out += "\":{";
    field("p50", times.percentile(0.5));
    out += ',';
    field("p95", times.percentile(0.95));
    out += ',';
    field("p99", times.percentile(0.99));
    out += ',';
    field("max", times.largest());
    out += '}';
}

void append_figures(std::string& out, const audit_lock_stats& lock) {
    append_counts(out, lock);
    append_times(out, "wait_ms", lock.waited);
    append_times(out, "held_ms", lock.held);
}

}  // namespace

void append_counts(std::string& out, const audit_lock_stats& lock) {
    append_field(out, "grants", lock.grants);
    for (std::size_t index = 0; index < lock.ends.size(); ++index) {
        out += ',';
        append_field(out, audit_lock_stats::reasons[index], lock.ends[index]);
    }
    out += ',';
    append_field(out, "denied", lock.denied);
    out += ',';
    append_field(out, "kicked", lock.kicked);
}

void audit_lock_stats::add(const audit_lock_stats& other) {
    grants += other.grants;
    denied += other.denied;
    kicked += other.kicked;
    for (std::size_t index = 0; index < ends.size(); ++index) {
        ends[index] += other.ends[index];
    }
    waited.add(other.waited);
    held.add(other.held);
}

void audit_lock_stats::take(const audit_event& event) {
    if (const auto* const granted = std::get_if<audit_granted>(&event)) {
        ++grants;
        waited.add(granted->wait);
    } else if (const auto* const released = std::get_if<audit_released>(&event)) {
        const auto* const reason = std::ranges::find(reasons, released->reason);
        ++ends.at(static_cast<std::size_t>(reason - reasons.begin()));
        held.add(released->held);
    } else if (std::holds_alternative<audit_denied>(event)) {
        ++denied;
    } else if (std::holds_alternative<audit_kick_waiter>(event)) {
        ++kicked;
    }
}

bool audit_stats::take(std::string_view line) {
    const audit_line read = reader_.read(line);
    if (const auto* const record = std::get_if<audit_record>(&read)) {
        take(*record);
    } else if (const auto* const gap = std::get_if<audit_gap>(&read)) {
        lost_ += gap->lost;
    } else {
        ++unreadable_;
        return false;
    }
    return true;
}

void audit_stats::take(const audit_record& record) {
    auto found = locks_.find(record.lock);
    if (found == locks_.end()) {
        found = locks_.try_emplace(std::string{record.lock}).first;
    }
    found->second.take(record.event);
}

audit_lock_stats audit_stats::total() const {
    audit_lock_stats out;
    for (const auto& [name, lock] : locks_) {
        out.add(lock);
    }
    return out;
}

std::string audit_stats::to_json() const {
    std::string out = "{\"locks\":[";
    const char* separator = "";
    for (const auto& [name, lock] : locks_) {
        out += std::exchange(separator, ",");
        out += "{\"lock\":";
        append_json_string(out, name);
        out += ',';
        append_figures(out, lock);
        out += '}';
    }
    out += "],\"total\":{";
    append_figures(out, total());
    out += "},";
    append_field(out, "lost", lost_);
    out += ',';
    append_field(out, "unreadable", unreadable_);
    out += "}\n";
    return out;
}

}  // namespace monolock::telemetry
