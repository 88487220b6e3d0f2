#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace monolock::coordination {

// Numbers of etcd's. A revision counts the transactions of the whole store.
struct revision {
    std::int64_t value = 0;
    friend auto operator<=>(const revision&, const revision&) = default;
};
struct lease_id {
    std::int64_t value = 0;
    friend auto operator<=>(const lease_id&, const lease_id&) = default;
};

// Which server is, or was, active, from when it won the key until it lost it: the create revision
// of `active`. Later terms are larger.
using term = revision;

// The value of `active`, and what etcd says of it.
struct active_record {
    std::string name;                  // of the server, for people: -advertise
    std::chrono::milliseconds ttl{0};  // its own: it stops 0.8 of that after its last renewal
    std::uint64_t sequence = 0;        // of its renewals; the campaign's is 0
    friend bool operator==(const active_record&, const active_record&) = default;
};
struct active_entry {
    active_record value;
    term created;       // create_revision
    revision modified;  // mod_revision
    friend bool operator==(const active_entry&, const active_entry&) = default;
};

// The value of `state`: what outlives the server that wrote it (docs/decisions/0020).
struct state_record {
    std::uint64_t ceiling = 0;                   // every token ever granted is below
    std::chrono::milliseconds longest_lease{0};  // no longer one was granted, as far as covered
    std::string name;                            // who wrote it
    // How long from this renewal on its writer may still answer. Nobody before it answers any more.
    std::chrono::milliseconds ttl{0};
    term written_in;
    std::uint64_t sequence = 0;  // of the renewal that wrote it
    bool resigned = false;       // and that was its last: it answers nobody any more
    friend bool operator==(const state_record&, const state_record&) = default;
};

}  // namespace monolock::coordination
