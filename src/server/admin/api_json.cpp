#include "server/admin/api_json.hpp"

#include <algorithm>
#include <chrono>

#include "telemetry/escape.hpp"

namespace monolock::server::admin {

namespace {

void append_key(std::string& out, std::string_view key) {
    out += '"';
    out += key;
    out += "\":";
}

void append_age(std::string& out, std::string_view key, core::nanoseconds age) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(age).count();
    append_number(out, key, static_cast<std::uint64_t>(std::max<std::int64_t>(0, count)));
}

void append_who(std::string& out, core::session_id id, std::string_view identity,
                const peer_address& peer) {
    append_number(out, "id", id.value);
    out += ',';
    append_text(out, "identity", identity);
    out += ',';
    append_text(out, "remote_addr", peer.to_string());
}

}  // namespace

void append_time(std::string& out, std::string_view key, core::time_point when, const moment& now) {
    append_key(out, key);
    out += '"';
    telemetry::append_rfc3339(
        out,
        now.wall - std::chrono::duration_cast<telemetry::wall_time::duration>(now.steady - when));
    out += '"';
}

moment moment::now() noexcept {
    return {.steady = std::chrono::steady_clock::now(), .wall = std::chrono::system_clock::now()};
}

void append_text(std::string& out, std::string_view key, std::string_view value) {
    append_key(out, key);
    telemetry::append_json_string(out, value);
}

void append_number(std::string& out, std::string_view key, std::uint64_t value) {
    append_key(out, key);
    out += std::to_string(value);
}

void append_flag(std::string& out, std::string_view key, bool value) {
    append_key(out, key);
    out += value ? "true" : "false";
}

void append_holder(std::string& out, const claim_view& who, core::time_point taken_at,
                   const moment& now) {
    out += '{';
    append_who(out, who.id, who.identity, who.peer);
    out += ',';
    append_time(out, "since", who.since, now);
    out += ',';
    append_age(out, "held_ms", taken_at - who.since);
    out += ',';
    append_age(out, "silent_ms", taken_at - who.last_seen);
    out += ',';
    append_age(out, "lease_ms", who.lease);
    out += ',';
    append_number(out, "token", who.token.value);
    out += '}';
}

void append_waiter(std::string& out, const claim_view& who, core::time_point taken_at,
                   const moment& now) {
    out += '{';
    append_who(out, who.id, who.identity, who.peer);
    out += ',';
    append_time(out, "queued_at", who.since, now);
    out += ',';
    append_age(out, "waited_ms", taken_at - who.since);
    out += ',';
    append_age(out, "lease_ms", who.lease);
    out += '}';
}

void append_lock(std::string& out, const lock_view& lock, const moment& now) {
    out += '{';
    append_text(out, "name", lock.name);
    out += ",\"holder\":";
    if (lock.holder) {
        append_holder(out, *lock.holder, lock.taken_at, now);
    } else {
        out += "null";
    }
    out += ",\"waiters\":[";
    for (std::size_t index = 0; index < lock.waiters.size(); ++index) {
        out += index == 0 ? "" : ",";
        append_waiter(out, lock.waiters[index], lock.taken_at, now);
    }
    out += "],";
    append_number(out, "waiters_total", lock.waiters_total);
    out += '}';
}

void append_change(std::string& out, const ownership_change& change, const moment& now) {
    const bool granted = change.what == ownership_change::kind::granted;
    out += '{';
    append_text(out, "event", granted ? "granted" : "released");
    out += ',';
    append_time(out, "time", change.at, now);
    out += ',';
    append_text(out, "name", change.lock);
    out += ',';
    append_who(out, change.id, change.identity, change.peer);
    out += ',';
    append_number(out, "token", change.token.value);
    out += ',';
    append_age(out, granted ? "wait_ms" : "held_ms", change.lasted);
    if (!granted) {
        out += ',';
        append_text(out, "reason", core::to_string(change.reason));
    }
    out += '}';
}

std::string error_body(std::string_view why) {
    std::string out = "{";
    append_text(out, "error", why);
    return out += "}\n";
}

}  // namespace monolock::server::admin
