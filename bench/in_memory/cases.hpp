#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace monolock::bench::in_memory {

// Named figures, in the order in which a person reads them. Names end with their unit; without one
// they are counts.
using figures = nlohmann::ordered_json;

// Heartbeats of all sessions in turn, each with a lock of its own, a batch of them in flight.
struct heartbeat_options {
    std::size_t sessions = 1000;
    std::size_t shards = 1;
    bool floor = false;  // the bare loop instead of the server
    std::size_t slices = 7;
    std::size_t slice_heartbeats_min = 200'000;
};
[[nodiscard]] figures run_heartbeat(const heartbeat_options& options);

// One lock with many waiters: the owner closes and the next is granted, again and again; then
// waiters anywhere in the queue close. Who left queues up again.
struct queue_options {
    std::size_t waiters = 10;
    std::size_t rounds = 20'000;
    std::size_t shards = 1;
};
[[nodiscard]] figures run_queue(const queue_options& options);

// A listing of all locks, while heartbeats of one session after the other are answered.
struct listing_options {
    std::size_t sessions = 100'000;
    std::size_t shards = 1;
    std::chrono::milliseconds alone{1'000};  // heartbeats without a listing, for comparison
};
[[nodiscard]] figures run_listing(const listing_options& options);

// All sessions fall silent after a last heartbeat. Some of the locks have a waiter that lives on.
struct expiry_options {
    std::size_t sessions = 100'000;
    std::size_t waiters = 10'000;
    std::size_t shards = 1;
    std::chrono::milliseconds lease{4'000};
    bool at_once = false;  // the last heartbeats come in one burst, not spread over lease / 4
};
[[nodiscard]] figures run_expiry(const expiry_options& options);

// Resident memory of so many sessions, and what of it goes back when they have left.
struct memory_options {
    std::size_t sessions = 100'000;
    std::size_t shards = 1;
    bool waiters = false;  // of one lock
};
[[nodiscard]] figures run_memory(const memory_options& options);

// Sessions that beat every quarter of their lease, as clients do.
struct beating_options {
    std::size_t sessions = 100'000;
    std::size_t shards = 1;
    std::chrono::milliseconds lease{10'000};
    std::chrono::milliseconds duration{30'000};
};
[[nodiscard]] figures run_beating(const beating_options& options);

}  // namespace monolock::bench::in_memory
