#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "server/audit_entry.hpp"

namespace monolock::server {

// What waits for the audit log's writer, bounded in bytes. When the bound is passed entries are
// lost and counted; a gap entry stands exactly where they would have stood. Once it loses, it goes
// on losing until half of the bound is free, so that a disk that is slow rather than stuck costs a
// few gaps and not thousands. Belongs to one thread at a time.
class audit_queue {
public:
    struct limits {
        // Besides the batch that the writer is working on. At 100 bytes an event (the names are
        // short) this is a disk that refuses for over a minute at 1,000 events a second.
        std::size_t bytes_max = std::size_t{8} << 20U;
        std::size_t batch_bytes = std::size_t{64} << 10U;
    };

    explicit audit_queue(limits bounds) noexcept : bounds_{bounds} {}

    // False: lost.
    [[nodiscard]] bool push(const audit_entry& entry);

    // The oldest entries; nothing if there are none. A gap at the very end comes out too, with
    // `now` as its time.
    [[nodiscard]] std::optional<audit_batch> take(telemetry::wall_time now);

    [[nodiscard]] bool empty() const noexcept { return batches_.empty() && lost_here_ == 0; }
    // Entries that wait, gaps not counted.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    // Entries lost ever.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

private:
    void append(const audit_entry& entry);
    void append_gap(telemetry::wall_time when);

    limits bounds_;
    std::deque<audit_batch> batches_;
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
    std::uint64_t lost_ = 0;
    std::uint64_t lost_here_ = 0;  // since the last entry that was taken in
};

}  // namespace monolock::server
