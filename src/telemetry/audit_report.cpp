#include "telemetry/audit_report.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "protocol/lock_name.hpp"
#include "telemetry/escape.hpp"

namespace monolock::telemetry {

namespace {

constexpr std::string_view ellipsis = "\u2026";

std::int64_t ms_of(wall_time time) {
    return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

template <class Number>
void append_field(std::string& out, std::string_view key, Number value) {
    out += '"';
    out += key;
    out += "\":";
    out += std::to_string(value);
}

// Two bins for each doubling: 0, 1, 2, 3, 4 to 5, 6 to 7, 8 to 11 … A bucket of the histogram lies
// in one of them.
std::size_t bin_of(std::uint64_t ms) noexcept {
    if (ms < 2) {
        return ms;
    }
    const auto doubling = static_cast<std::size_t>(std::bit_width(ms)) - 1;
    return 2 * doubling + (ms >> (doubling - 1) & 1U);
}

void append_bins(std::string& out, const duration_histogram& times) {
    std::vector<std::uint64_t> bins;
    for (const auto& [bound, count] : times.buckets()) {
        const std::size_t bin = bin_of(static_cast<std::uint64_t>(bound.count()));
        bins.resize(std::max(bins.size(), bin + 1));
        bins[bin] += count;
    }
    out += "\"bins\":[";
    const char* separator = "";
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        if (bins[bin] > 0) {
            out += std::exchange(separator, ",");
            out += '[' + std::to_string(bin) + ',' + std::to_string(bins[bin]) + ']';
        }
    }
    out += ']';
}

void append_times(std::string& out, std::string_view key, const duration_histogram& times) {
    out += ",\"";
    out += key;
    out += "\":{";
    append_field(out, "count", times.count());
    for (const auto& [name, share] :
         {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}) {
        out += ',';
        append_field(out, name, times.percentile(share).count());
    }
    out += ',';
    append_field(out, "max", times.largest().count());
    out += ',';
    append_bins(out, times);
    out += '}';
}

void append_figures(std::string& out, const audit_lock_stats& figures) {
    append_counts(out, figures);
    append_times(out, "wait_ms", figures.waited);
    append_times(out, "held_ms", figures.held);
}

wall_time before(wall_time time, std::chrono::milliseconds span) {
    // As milliseconds: as nanoseconds a long one does not fit.
    const auto age = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
    return span < age ? time - span : wall_time{};
}

// Whose connection it was, without the port that each connection has anew.
std::string_view owner_in(const audit_record& record, std::string& scratch) {
    if (!record.identity.empty()) {
        return record.identity;
    }
    std::string_view address = record.remote_addr;
    constexpr std::string_view unix_peer = "unix:pid=";
    if (address.starts_with(unix_peer)) {
        const std::size_t comma = address.find(',');
        scratch = "unix:";
        scratch += comma == std::string_view::npos ? address.substr(unix_peer.size())
                                                   : address.substr(comma + 1);
        return scratch;
    }
    const std::size_t colon = address.rfind(':');
    return colon == std::string_view::npos || colon == 0 ? address : address.substr(0, colon);
}

}  // namespace

audit_report::audit_report(audit_report_filter filter, audit_report_limits limits)
    : filter_{std::move(filter)}, limits_{limits} {}

bool audit_report::take(std::string_view line) {
    const audit_line read = reader_.read(line);
    const auto* const record = std::get_if<audit_record>(&read);
    if (record != nullptr && record->lock.size() <= protocol::lock_name_bytes_max) {
        if (!filter_.wants_lock || filter_.wants_lock(record->lock)) {
            take(*record);
        }
    } else if (const auto* const gap = std::get_if<audit_gap>(&read)) {
        take(*gap);
    } else {
        ++unreadable_;
        return false;
    }
    return true;
}

bool audit_report::is_within(wall_time time) {
    if (filter_.since && time < *filter_.since) {
        has_earlier_ = true;
        return false;
    }
    if (filter_.until && time >= *filter_.until) {
        has_later_ = true;
        return false;
    }
    first_ = std::min(first_.value_or(time), time);
    last_ = std::max(last_.value_or(time), time);
    return true;
}

void audit_report::take(const audit_gap& gap) {
    if (is_within(gap.time)) {
        lost_ += gap.lost;
        remember({.time = gap.time, .what = "gap", .lock = {}, .who = {}, .number = gap.lost});
    }
}

void audit_report::take(const audit_record& record) {
    if (!is_within(record.time)) {
        take_before(record);
        return;
    }
    ++records_;
    total_.take(record.event);
    note(record);
    lock_history* const lock = history_of(record.lock);
    if (lock == nullptr) {
        ++records_of_others_;
        others_.take(record.event);
        return;
    }
    lock->figures.take(record.event);
    if (const auto* const granted = std::get_if<audit_granted>(&record.event)) {
        if (!lock->ownerships.empty() && lock->ownerships.back().token >= granted->token.value) {
            ++disordered_;
        }
        begin(*lock, record, *granted);
    } else if (const auto* const released = std::get_if<audit_released>(&record.event)) {
        end(*lock, record, *released);
    }
}

// Who owns what when the time begins. (What comes after the time says nothing about it.)
void audit_report::take_before(const audit_record& record) {
    if (!filter_.since || record.time >= *filter_.since) {
        return;
    }
    if (const auto* const granted = std::get_if<audit_granted>(&record.event)) {
        if (before_.size() < limits_.locks_max || before_.contains(record.lock)) {
            before_.insert_or_assign(std::string{record.lock},
                                     ownership{.from = record.time,
                                               .to = {},
                                               .waited_ms = granted->wait.count(),
                                               .token = granted->token.value,
                                               .owner = owner_of(record)});
        }
    } else if (std::holds_alternative<audit_released>(record.event)) {
        if (const auto found = before_.find(record.lock); found != before_.end()) {
            before_.erase(found);
        }
    }
}

audit_report::lock_history* audit_report::history_of(std::string_view lock) {
    const auto found = locks_.find(lock);
    if (found != locks_.end()) {
        return &found->second;
    }
    if (locks_.size() >= limits_.locks_max) {
        return nullptr;
    }
    lock_history& made = locks_.try_emplace(std::string{lock}).first->second;
    if (const auto held = before_.find(lock); held != before_.end()) {
        made.ownerships.push_back(held->second);
        before_.erase(held);
    }
    return &made;
}

void audit_report::begin(lock_history& lock, const audit_record& record,
                         const audit_granted& granted) {
    if (!lock.ownerships.empty() && lock.ownerships.back().end == still_owned) {
        lock.ownerships.back().end = unrecorded;
        lock.ownerships.back().to = record.time;
    }
    lock.ownerships.push_back({.from = record.time,
                               .to = {},
                               .waited_ms = granted.wait.count(),
                               .token = granted.token.value,
                               .owner = owner_of(record)});
    if (lock.ownerships.size() > limits_.ownerships_max) {
        lock.ownerships.pop_front();
        ++lock.forgotten;
    }
}

void audit_report::end(lock_history& lock, const audit_record& record,
                       const audit_released& released) {
    // Its grant is in an older file, or lost: how long it was owned says when it began.
    if (lock.ownerships.empty() || lock.ownerships.back().end != still_owned ||
        lock.ownerships.back().token != released.token.value) {
        begin(lock, record, {.token = released.token});
        lock.ownerships.back().from = before(record.time, released.held);
        lock.ownerships.back().waited_ms = -1;
    }
    const auto* const reason = std::ranges::find(audit_lock_stats::reasons, released.reason);
    lock.ownerships.back().to = record.time;
    lock.ownerships.back().end = static_cast<int>(reason - audit_lock_stats::reasons.begin());
}

// What an operator looks for first.
void audit_report::note(const audit_record& record) {
    incident what{.time = record.time, .what = {}, .lock = {}, .who = {}};
    if (const auto* const released = std::get_if<audit_released>(&record.event)) {
        const auto* const reason = std::ranges::find(audit_lock_stats::reasons, released->reason);
        what.what = *reason == "graceful" ? std::string_view{} : *reason;
        what.number = static_cast<std::uint64_t>(released->held.count());
    } else if (std::holds_alternative<audit_denied>(record.event)) {
        what.what = "denied";
    } else if (std::holds_alternative<audit_kick_waiter>(record.event)) {
        what.what = "kicked";
    }
    if (!what.what.empty()) {
        what.lock = record.lock;
        what.who = cut(record.identity.empty() ? record.remote_addr : record.identity);
        remember(std::move(what));
    }
}

void audit_report::remember(incident what) {
    incidents_.push_back(std::move(what));
    if (incidents_.size() > limits_.incidents_max) {
        incidents_.pop_front();
        ++incidents_forgotten_;
    }
}

std::size_t audit_report::owner_of(const audit_record& record) {
    std::string scratch;
    const std::string name = cut(owner_in(record, scratch));
    if (const auto found = owner_numbers_.find(name); found != owner_numbers_.end()) {
        return found->second;
    }
    if (owners_.size() > limits_.owners_max) {
        return 0;
    }
    owner_numbers_.emplace(name, owners_.size());
    owners_.push_back(name);
    return owners_.size() - 1;
}

// Between two characters, and with a sign that something is missing.
std::string audit_report::cut(std::string_view text) const {
    if (text.size() <= limits_.owner_bytes_max) {
        return std::string{text};
    }
    std::size_t size = limits_.owner_bytes_max;
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) {
        --size;
    }
    return std::string{text.substr(0, size)} + std::string{ellipsis};
}

// Of a time after its last record a log says nothing, not even who goes on owning what.
bool audit_report::tells_of_the_time() const noexcept {
    return first_.has_value() || (has_earlier_ && has_later_);
}

void audit_report::append_head(std::string& out) const {
    append_field(out, "records", records_);
    out += ',';
    append_field(out, "lost", lost_);
    out += ',';
    append_field(out, "unreadable", unreadable_);
    out += ',';
    append_field(out, "disordered", disordered_);
    if (tells_of_the_time()) {
        out += ',';
        append_field(out, "from", ms_of(has_earlier_ ? *filter_.since : *first_));
        out += ',';
        append_field(out, "to", ms_of(has_later_ ? *filter_.until : *last_));
    }
    out += ",\"limits\":{";
    append_field(out, "locks", limits_.locks_max);
    out += ',';
    append_field(out, "ownerships", limits_.ownerships_max);
    out += ',';
    append_field(out, "owners", limits_.owners_max);
    out += ',';
    append_field(out, "incidents", limits_.incidents_max);
    out += "},\"owners\":[";
    const char* separator = "";
    for (const std::string& name : owners_) {
        out += std::exchange(separator, ",");
        append_json_string(out, name);
    }
    out += "],";
    append_field(out, "owners_full", owners_.size() > limits_.owners_max ? 1 : 0);
}

void audit_report::append_lock(std::string& out, std::string_view name,
                               const lock_history& lock) const {
    out += "{\"lock\":";
    append_json_string(out, name);
    out += ',';
    append_figures(out, lock.figures);
    out += ',';
    append_field(out, "forgotten", lock.forgotten);
    out += ",\"ownerships\":[";
    const char* separator = "";
    for (const ownership& each : lock.ownerships) {
        out += std::exchange(separator, ",");
        out += '[' + std::to_string(ms_of(each.from)) + ',' +
               (each.end == still_owned ? "null" : std::to_string(ms_of(each.to))) + ',' +
               std::to_string(each.end) + ',' + std::to_string(each.waited_ms) + ",\"" +
               std::to_string(each.token) + "\"," + std::to_string(each.owner) + ']';
    }
    out += "]}";
}

void audit_report::append_incidents(std::string& out) const {
    append_field(out, "incidents_forgotten", incidents_forgotten_);
    out += ",\"incidents\":[";
    const char* separator = "";
    for (const incident& each : incidents_) {
        out += std::exchange(separator, ",");
        out += '[' + std::to_string(ms_of(each.time)) + ",\"";
        out += each.what;
        out += "\",";
        append_json_string(out, each.lock);
        out += ',';
        append_json_string(out, each.who);
        out += ',' + std::to_string(each.number) + ']';
    }
    out += ']';
}

std::string audit_report::to_json() const {
    std::string out = "{";
    append_head(out);
    out += ",\"total\":{";
    append_figures(out, total_);
    out += "},\"others\":{";
    append_field(out, "records", records_of_others_);
    out += ',';
    append_figures(out, others_);
    out += "},\"locks\":[";
    const char* separator = "";
    for (const auto& [name, lock] : locks_) {
        out += std::exchange(separator, ",");
        append_lock(out, name, lock);
    }
    if (tells_of_the_time()) {
        for (const auto& [name, held] : before_) {  // owned all the time
            out += std::exchange(separator, ",");
            append_lock(out, name, {.figures = {}, .ownerships = {held}});
        }
    }
    out += "],";
    append_incidents(out);
    out += '}';
    return without_markup(out);
}

}  // namespace monolock::telemetry
