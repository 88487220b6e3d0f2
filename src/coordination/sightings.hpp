#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "coordination/records.hpp"
#include "coordination/time.hpp"

namespace monolock::coordination {

// Which renewal of `active` this server saw last and when, and its own last one; from that, when
// it may open after it has won (docs/decisions/0020).
class sightings {
public:
    // `now` is a reading taken after this arrived. A renewal that was seen before keeps its time.
    void saw(const active_entry& what, time_point now);
    // Of this server's own renewals that put `state`, answered or not. `at` is the send time.
    void sent(term mine, std::uint64_t sequence, time_point at);

    // When the server may open that won `mine` by a campaign whose answer came at `won_at`:
    //  - at once if `state` was resigned;
    //  - if the renewal that `state` names is the last that was seen of its term, its TTL after
    //  that was seen;
    //  - else the larger of that TTL and the own one after `won_at`.
    // `state` is what the campaign read. One that cannot be from before the campaign is not trusted
    // with anything that would open sooner.
    [[nodiscard]] time_point opens_at(const std::optional<state_record>& state, term mine,
                                      time_point won_at, std::chrono::milliseconds own_ttl) const;

private:
    struct renewal {
        term of;
        std::uint64_t sequence = 0;
        time_point at;
    };
    // The last of each term, the latest term first. Several, because what this server's own
    // campaign put is seen before its answer comes, and so is that of one which won and died before
    // it renewed: neither must hide the renewal that `state` names.
    std::array<std::optional<renewal>, 4> seen_;
    std::optional<renewal> own_;
};

}  // namespace monolock::coordination
