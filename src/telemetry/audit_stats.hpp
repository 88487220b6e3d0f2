#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "telemetry/audit_reader.hpp"
#include "telemetry/duration_histogram.hpp"

namespace monolock::telemetry {

// What an audit log says about each lock, in sums. Memory grows with the number of locks.
struct audit_lock_stats {
    std::uint64_t grants = 0;
    std::uint64_t denied = 0;
    std::uint64_t kicked = 0;
    // Of ends; by the words of reasons.
    std::array<std::uint64_t, 4> ends{};
    duration_histogram waited;  // of each grant
    duration_histogram held;    // of each end

    static constexpr std::array<std::string_view, 4> reasons{"graceful", "expired", "io_timeout",
                                                             "force"};

    void add(const audit_lock_stats& other);
    void take(const audit_event& event);
};

// Its counts, without the times, as fields of a JSON object: "grants":1,…
void append_counts(std::string& out, const audit_lock_stats& lock);

class audit_stats {
public:
    // A line, without its newline; false if it is no record, which is counted and else ignored.
    bool take(std::string_view line);

    [[nodiscard]] const std::map<std::string, audit_lock_stats, std::less<>>& locks()
        const noexcept {
        return locks_;
    }
    [[nodiscard]] audit_lock_stats total() const;
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }

    // One JSON object with its newline: the locks by name, times in milliseconds.
    [[nodiscard]] std::string to_json() const;

private:
    void take(const audit_record& record);

    audit_reader reader_;
    std::map<std::string, audit_lock_stats, std::less<>> locks_;
    std::uint64_t lost_ = 0;
    std::uint64_t unreadable_ = 0;
};

}  // namespace monolock::telemetry
