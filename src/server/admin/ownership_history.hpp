#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fact.hpp"
#include "server/peer_address.hpp"

namespace monolock::server::admin {

// A change of a lock's owner.
struct ownership_change {
    enum class kind : std::uint8_t { granted, released };

    std::uint64_t number = 0;  // of the shard, rising
    kind what = kind::granted;
    core::end_reason reason = core::end_reason::graceful;  // released
    core::session_id id;
    core::fencing_token token;
    core::time_point at;
    core::nanoseconds lasted{0};  // granted: waited; released: held
    peer_address peer;
    std::string lock;
    std::string identity;
};

// The latest ownership changes of one shard, as many as fit. Its thread alone uses it. Once it is
// full, a change costs no allocation but for names longer than any before in its place.
class ownership_history {
public:
    static constexpr std::size_t capacity = 4096;

    // For the shard's observer_port::on_fact: takes grants and the ends of owners.
    void take(const core::fact& what);

    // The number of the next change.
    [[nodiscard]] std::uint64_t next() const noexcept { return next_; }

    // The last `count` of that lock that are still there, oldest first.
    [[nodiscard]] std::vector<ownership_change> of(std::string_view lock, std::size_t count) const;

    // Those from that number on, oldest first; of more than `count` the last, and those that are
    // gone are left out.
    [[nodiscard]] std::vector<ownership_change> since(std::uint64_t number,
                                                      std::size_t count) const;

private:
    [[nodiscard]] std::uint64_t first() const noexcept {
        return next_ > capacity ? next_ - capacity : 0;
    }
    [[nodiscard]] const ownership_change& at(std::uint64_t number) const {
        return ring_[number % capacity];
    }
    ownership_change& place_for(const core::session& who);

    std::vector<ownership_change> ring_;
    std::uint64_t next_ = 0;
};

}  // namespace monolock::server::admin
