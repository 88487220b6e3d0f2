#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/audit_reader.hpp"
#include "telemetry/audit_stats.hpp"

namespace monolock::telemetry {

// What of an audit log is reported. Empty: everything.
struct audit_report_filter {
    std::optional<wall_time> since;  // records from then on
    std::optional<wall_time> until;  // and before that
    std::function<bool(std::string_view lock)> wants_lock;
};

// What bounds the memory, whatever the log holds (docs/audit.md has how much that is). What is left
// out is counted, and said.
struct audit_report_limits {
    std::size_t locks_max = 5000;       // the first to come; further ones are one row together
    std::size_t ownerships_max = 100;   // of each lock, the last
    std::size_t owners_max = 20'000;    // with a name of their own
    std::size_t owner_bytes_max = 128;  // of a name
    std::size_t incidents_max = 1000;   // the last
};

// An audit log for a page that draws it: the figures of audit_stats for each lock, when it was
// owned by whom, and what went wrong. Pure; records in the order of the log.
//
// Only records within the filter's time are counted. But an ownership that reaches into that time
// is known by its grant before it, so that its lock does not look free.
class audit_report {
public:
    explicit audit_report(audit_report_filter filter = {}, audit_report_limits limits = {});

    // A line, without its newline; false if it is no record, which is counted and else ignored.
    bool take(std::string_view line);

    // How many records were counted.
    [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

    // Lines that are no records.
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }
    // Grants that stand behind a later one of their lock: the files came in the wrong order, or one
    // came twice.
    [[nodiscard]] std::uint64_t disordered() const noexcept { return disordered_; }

    // One JSON object without a newline. Times are milliseconds since 1970, durations milliseconds,
    // tokens text. In it no character has a meaning in HTML.
    [[nodiscard]] std::string to_json() const;

private:
    // How an ownership ended, as an index of audit_lock_stats::reasons; or not.
    static constexpr int still_owned = -1;
    static constexpr int unrecorded = -2;  // there is a later owner, but no end

    struct ownership {
        wall_time from;
        wall_time to;
        int end = still_owned;
        std::int64_t waited_ms = -1;  // not known
        std::uint64_t token = 0;
        std::size_t owner = 0;
    };
    struct lock_history {
        audit_lock_stats figures;
        std::deque<ownership> ownerships;
        std::uint64_t forgotten = 0;  // ownerships before these
    };
    struct incident {
        wall_time time;
        std::string_view what;  // "expired", "io_timeout", "force", "denied", "kicked", "gap"
        std::string lock;
        std::string who;
        std::uint64_t number = 0;  // how long it was owned; how many records are lost
    };
    using histories = std::map<std::string, lock_history, std::less<>>;

    [[nodiscard]] bool is_within(wall_time time);
    void take(const audit_record& record);
    void take(const audit_gap& gap);
    void take_before(const audit_record& record);
    [[nodiscard]] lock_history* history_of(std::string_view lock);
    void begin(lock_history& lock, const audit_record& record, const audit_granted& granted);
    void end(lock_history& lock, const audit_record& record, const audit_released& released);
    void note(const audit_record& record);
    void remember(incident what);
    [[nodiscard]] std::size_t owner_of(const audit_record& record);
    [[nodiscard]] std::string cut(std::string_view text) const;

    [[nodiscard]] bool tells_of_the_time() const noexcept;
    void append_head(std::string& out) const;
    void append_lock(std::string& out, std::string_view name, const lock_history& lock) const;
    void append_incidents(std::string& out) const;

    audit_report_filter filter_;
    audit_report_limits limits_;
    audit_reader reader_;

    histories locks_;
    std::map<std::string, ownership, std::less<>> before_;  // owned when the time begins
    audit_lock_stats total_;
    audit_lock_stats others_;  // of locks that are not in locks_
    std::uint64_t records_of_others_ = 0;
    std::vector<std::string> owners_{"others"};
    std::map<std::string, std::size_t, std::less<>> owner_numbers_;
    std::deque<incident> incidents_;
    std::uint64_t incidents_forgotten_ = 0;

    std::uint64_t records_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t unreadable_ = 0;
    std::uint64_t disordered_ = 0;    // grants with no larger token than their lock had before
    std::optional<wall_time> first_;  // of the records that count
    std::optional<wall_time> last_;
    bool has_earlier_ = false;  // records before `since`
    bool has_later_ = false;    // records from `until` on
};

}  // namespace monolock::telemetry
