#include "server/audit_entry.hpp"

#include <cstring>
#include <span>
#include <type_traits>

#include "core/assert.hpp"
#include "telemetry/audit_record.hpp"

namespace monolock::server {

namespace {

// What stands before an entry's texts. Copied in and out as bytes, so it needs no alignment.
struct packed_head {
    audit_entry::kind what;
    core::end_reason reason;
    peer_address peer;
    std::uint32_t lock_bytes;
    std::uint32_t identity_bytes;
    telemetry::wall_time time;
    std::uint64_t number;
    std::chrono::milliseconds span;
};
static_assert(std::is_trivially_copyable_v<packed_head>);

telemetry::audit_event event_of(const audit_entry& entry) {
    switch (entry.what) {
        case audit_entry::kind::granted:
            return telemetry::audit_granted{.token = {entry.number}, .wait = entry.span};
        case audit_entry::kind::released:
            return telemetry::audit_released{.token = {entry.number},
                                             .held = entry.span,
                                             .reason = core::to_string(entry.reason)};
        case audit_entry::kind::denied:
            return telemetry::audit_denied{};
        case audit_entry::kind::force_release:
            return telemetry::audit_force_release{.token = {entry.number}};
        case audit_entry::kind::kick_waiter:
            return telemetry::audit_kick_waiter{};
        case audit_entry::kind::gap:
            break;
    }
    MONOLOCK_ASSERT(entry.what != audit_entry::kind::gap);
    return {};
}

}  // namespace

std::size_t audit_batch::size_of(const audit_entry& entry) noexcept {
    return sizeof(packed_head) + entry.lock.size() + entry.identity.size();
}

void audit_batch::add(const audit_entry& entry) noexcept {
    MONOLOCK_ASSERT(has_room_for(entry));
    const packed_head head{.what = entry.what,
                           .reason = entry.reason,
                           .peer = entry.peer,
                           .lock_bytes = static_cast<std::uint32_t>(entry.lock.size()),
                           .identity_bytes = static_cast<std::uint32_t>(entry.identity.size()),
                           .time = entry.time,
                           .number = entry.number,
                           .span = entry.span};
    const auto append = [this](std::span<const std::byte> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    };
    append(std::as_bytes(std::span{&head, 1}));
    append(std::as_bytes(std::span{entry.lock}));
    append(std::as_bytes(std::span{entry.identity}));
    count_ += entry.what == audit_entry::kind::gap ? 0U : 1U;
}

audit_entry audit_batch::read(std::size_t& offset) const noexcept {
    MONOLOCK_ASSERT(offset + sizeof(packed_head) <= bytes_.size());
    packed_head head{};
    std::memcpy(&head, bytes_.data() + offset, sizeof head);
    offset += sizeof head;
    const auto text = [&](std::size_t size) {
        const std::string_view found{reinterpret_cast<const char*>(bytes_.data() + offset), size};
        offset += size;
        return found;
    };
    audit_entry entry{.what = head.what,
                      .reason = head.reason,
                      .time = head.time,
                      .number = head.number,
                      .span = head.span,
                      .peer = head.peer,
                      .lock = text(head.lock_bytes),
                      .identity = {}};
    entry.identity = text(head.identity_bytes);
    return entry;
}

void append_line(std::string& out, const audit_entry& entry) {
    if (entry.what == audit_entry::kind::gap) {
        telemetry::append_audit_line(
            out, telemetry::audit_gap{.time = entry.time, .lost = entry.number});
        return;
    }
    const std::string from = entry.peer.to_string();
    telemetry::append_audit_line(out, telemetry::audit_record{.time = entry.time,
                                                              .lock = entry.lock,
                                                              .identity = entry.identity,
                                                              .remote_addr = from,
                                                              .event = event_of(entry)});
}

}  // namespace monolock::server
