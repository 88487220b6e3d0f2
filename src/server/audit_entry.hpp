#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/session.hpp"
#include "server/peer_address.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::server {

// One event of the audit log on its way from a shard to the writer: as it is known at the event,
// with nothing made into text yet, so that a shard pays for copying two names and no more.
struct audit_entry {
    enum class kind : std::uint8_t { granted, released, denied, force_release, kick_waiter, gap };

    kind what = kind::denied;
    core::end_reason reason = core::end_reason::graceful;  // released
    telemetry::wall_time time{};
    std::uint64_t number = 0;           // token; gap: how many were lost
    std::chrono::milliseconds span{0};  // granted: waited; released: held
    peer_address peer{};
    std::string_view lock{};
    std::string_view identity{};
};

// Entries packed one behind the other, in order.
class audit_batch {
public:
    // A single entry that is larger gets a batch of its own.
    explicit audit_batch(std::size_t capacity) { bytes_.reserve(capacity); }

    [[nodiscard]] static std::size_t size_of(const audit_entry& entry) noexcept;

    [[nodiscard]] bool has_room_for(const audit_entry& entry) const noexcept {
        return size_of(entry) <= bytes_.capacity() - bytes_.size();
    }
    // There must be room, so that this neither allocates nor throws.
    void add(const audit_entry& entry) noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    // The entry at `offset`, which moves on to the next; bytes() is the end. Its texts live as long
    // as the batch is not changed.
    [[nodiscard]] audit_entry read(std::size_t& offset) const noexcept;

private:
    std::vector<std::byte> bytes_;
    std::size_t count_ = 0;  // without gaps
};

// Appends the entry's line.
void append_line(std::string& out, const audit_entry& entry);

}  // namespace monolock::server
