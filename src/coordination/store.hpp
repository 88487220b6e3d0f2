#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "coordination/records.hpp"

// What a server asks of the store that coordinates it with the others, and what it is answered, as
// data: the shell (src/etcd) does it, the simulator plays it.
namespace monolock::coordination {

// Tells answers apart. One for each request, never used again.
struct ticket {
    std::uint64_t value = 0;
    friend bool operator==(const ticket&, const ticket&) = default;
};

// A lease of this server's own. Whole seconds, as etcd has them.
struct grant_lease {
    std::chrono::seconds ttl{0};
};
struct keep_lease_alive {
    lease_id lease;
};
// Best effort; the keys under it go with it.
struct revoke_lease {
    lease_id lease;
};
// Reads `active` as of now (linearizable).
struct look {};
// The three transactions of docs/decisions/0020.
struct campaign {
    lease_id lease;
    active_record value;
};
struct renew {
    lease_id lease;
    term mine;
    revision known;  // the modification revision of `active`
    active_record value;
    std::optional<state_record> state;  // none: what is there stays
};
struct resign {
    term mine;
    revision known;
    state_record state;
};
using request =
    std::variant<grant_lease, keep_lease_alive, revoke_lease, look, campaign, renew, resign>;

// Nothing is known: no answer within the time of a call, or one that is an error. What was asked
// for may have happened, or happen later.
struct failed {
    std::string why;  // one line, for people
};
struct lease_granted {
    lease_id lease;
    std::chrono::seconds ttl{0};  // what etcd made of it: may be more or less than was asked for
};
// Zero or less: there is no such lease any more. An answer that names no TTL is one of zero.
struct lease_kept {
    std::chrono::seconds ttl{0};
};
struct lease_revoked {};
struct seen {
    std::optional<active_entry> active;
    revision as_of;  // of the store, for a watch that is to begin behind it
};
// Won: `active` is mine, created at `at`, and `state` is what was there. Lost: `active` is whose it
// is.
struct campaigned {
    bool won = false;
    revision at;
    std::optional<state_record> state;
    std::optional<active_entry> active;
};
// Done: `at` is the new modification revision. Not done: what `active` is.
struct renewed {
    bool done = false;
    revision at;
    std::optional<active_entry> active;
};
// Not done: what `active` is.
struct resigned {
    bool done = false;
    std::optional<active_entry> active;
};
using answer = std::variant<failed, lease_granted, lease_kept, lease_revoked, seen, campaigned,
                            renewed, resigned>;

// What a watch on `active` tells, in the order of the store. A watch that breaks off says so once;
// what happened meanwhile is for a look to find.
struct active_put {
    active_entry entry;
};
struct active_deleted {
    revision at;
};
struct watch_broken {
    std::string why;
};
using watch_event = std::variant<active_put, active_deleted, watch_broken>;

}  // namespace monolock::coordination
