#include "server/audit_queue.hpp"

#include <algorithm>
#include <utility>

namespace monolock::server {

bool audit_queue::push(const audit_entry& entry) {
    // While it loses, half of the bound must be free first.
    const std::size_t limit = lost_here_ > 0 ? bounds_.bytes_max / 2 : bounds_.bytes_max;
    if (bytes_ + audit_batch::size_of(entry) > limit) {
        ++lost_;
        ++lost_here_;
        return false;
    }
    if (lost_here_ > 0) {
        append_gap(entry.time);
    }
    append(entry);
    return true;
}

std::optional<audit_batch> audit_queue::take(telemetry::wall_time now) {
    if (batches_.empty()) {
        if (lost_here_ == 0) {
            return std::nullopt;
        }
        append_gap(now);
    }
    audit_batch oldest = std::move(batches_.front());
    batches_.pop_front();
    bytes_ -= oldest.bytes();
    count_ -= oldest.count();
    return oldest;
}

void audit_queue::append(const audit_entry& entry) {
    if (batches_.empty() || !batches_.back().has_room_for(entry)) {
        batches_.emplace_back(std::max(bounds_.batch_bytes, audit_batch::size_of(entry)));
    }
    audit_batch& last = batches_.back();
    bytes_ -= last.bytes();
    count_ -= last.count();
    last.add(entry);
    bytes_ += last.bytes();
    count_ += last.count();
}

void audit_queue::append_gap(telemetry::wall_time when) {
    append({.what = audit_entry::kind::gap, .time = when, .number = std::exchange(lost_here_, 0)});
}

}  // namespace monolock::server
