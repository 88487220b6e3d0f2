#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/records.hpp"

namespace monolock::coordination {

// standby -> campaigning -> waiting -> active -> stepping_down -> standby, and each of the middle
// ones back to standby when the key is another's or lost. After shut_down() it ends in retired.
enum class role : std::uint8_t {
    standby,        // another has the key, or nobody knows
    campaigning,    // nobody has it: a lease, then the transaction
    waiting,        // won; the predecessor may still be active, or no renewal was answered yet
    active,         // serves clients, until the deadline of its mandate
    stepping_down,  // the server ends its sessions
    resigning,      // they are ended, and the store is told so
    retired,        // nothing is asked for any more
};
[[nodiscard]] std::string_view to_string(role one) noexcept;

// Why a server that had the key has it no more.
enum class loss : std::uint8_t {
    mandate_over,  // no transaction was answered in time
    key_taken,     // the key is another server's
    key_gone,      // nobody has it
    lease_gone,    // the lease that it is under has ended
    shut_down,     // it was told to
};
[[nodiscard]] std::string_view to_string(loss why) noexcept;

// How long claims queue after a server became active, so that owners whom its predecessor lost
// silently have stopped by themselves.
struct grant_delay_rule {
    // Nothing: automatic, the longest lease that `state` had at the campaign.
    std::optional<std::chrono::milliseconds> fixed = std::chrono::milliseconds{0};
    // Longer leases are granted as if they were of this length: not covered.
    std::chrono::milliseconds covered_max{60'000};
};

struct role_options {
    std::string name;             // of this server, for people
    std::chrono::seconds ttl{5};  // of its lease; at least 1
    grant_delay_rule grant_delay;
};

// How the tokens of this process stand. Plain numbers of the caller's.
struct token_position {
    std::uint64_t last = 0;     // the largest token that this process has granted; 0: none
    std::uint64_t unix_ms = 0;  // the wall clock, which may be wrong and may step
};

// The tokens of an active server: each is at least `first` and below `ceiling`, which was answered.
struct token_range {
    std::uint64_t first = 0;
    std::uint64_t ceiling = 0;
    friend bool operator==(const token_range&, const token_range&) = default;
};

// What all shards together say of the leases of their owners.
struct lease_report {
    // The limit that every shard had adopted before it said its part (role_machine::lease_limit).
    std::chrono::milliseconds adopted{0};
    // The longest lease of any owner now, or at any time since its report before; 0: none. So an
    // owner that ended in between counts, too.
    std::chrono::milliseconds longest{0};
    // The longest lease of a claim that only waits for the limit to be raised; 0: none.
    std::chrono::milliseconds wanted{0};
};

}  // namespace monolock::coordination
