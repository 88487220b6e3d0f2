#include "telemetry/audit_record.hpp"

#include <array>
#include <charconv>
#include <concepts>

#include "telemetry/escape.hpp"

namespace monolock::telemetry {

namespace {

// Keys and words are ours and need no escaping.
void append_key(std::string& out, std::string_view key) {
    out += ",\"";
    out += key;
    out += "\":";
}

void append_number(std::string& out, std::string_view key, std::integral auto value) {
    append_key(out, key);
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
}

void append_text(std::string& out, std::string_view key, std::string_view text) {
    append_key(out, key);
    append_json_string(out, text);
}

void append_head(std::string& out, wall_time time, std::string_view event) {
    out += R"({"time":")";
    append_rfc3339(out, time);
    out += R"(","event":")";
    out += event;
    out += '"';
}

struct fields_of_event {
    std::string& out;

    void operator()(const audit_granted& what) const {
        append_number(out, "token", what.token.value);
        append_number(out, "wait_ms", what.wait.count());
    }
    void operator()(const audit_released& what) const {
        append_number(out, "token", what.token.value);
        append_number(out, "held_ms", what.held.count());
        append_text(out, "reason", what.reason);
    }
    void operator()(const audit_denied& /*what*/) const {}
    void operator()(const audit_force_release& what) const {
        append_number(out, "token", what.token.value);
    }
    void operator()(const audit_kick_waiter& /*what*/) const {}
};

struct event_name {
    std::string_view operator()(const audit_granted& /*what*/) const { return "granted"; }
    std::string_view operator()(const audit_released& /*what*/) const { return "released"; }
    std::string_view operator()(const audit_denied& /*what*/) const { return "denied"; }
    std::string_view operator()(const audit_force_release& /*what*/) const {
        return "force_release";
    }
    std::string_view operator()(const audit_kick_waiter& /*what*/) const { return "kick_waiter"; }
};

}  // namespace

std::string_view name_of(const audit_event& event) noexcept {
    return std::visit(event_name{}, event);
}

void append_audit_line(std::string& out, const audit_record& record) {
    append_head(out, record.time, name_of(record.event));
    append_text(out, "lock", record.lock);
    append_text(out, "identity", record.identity);
    append_text(out, "remote_addr", record.remote_addr);
    std::visit(fields_of_event{out}, record.event);
    out += "}\n";
}

void append_audit_line(std::string& out, const audit_gap& gap) {
    append_head(out, gap.time, audit_gap_name);
    append_number(out, "lost", gap.lost);
    out += "}\n";
}

}  // namespace monolock::telemetry
