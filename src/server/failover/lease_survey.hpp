#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "coordination/role.hpp"
#include "server/shard.hpp"

namespace monolock::server {

// Asks all shards what the longest lease of their owners is, each on its own thread, one round at a
// time. A round that a shard does not answer is never over; what it would have told is only missed
// (role_machine::report). Used by one thread.
class lease_survey {
public:
    // `answered` is called on a shard's thread when the last one has answered.
    lease_survey(const shard_surroundings& around, std::function<void()> answered);

    // `adopted` is the limit that grants keep to already. Does nothing while a round is under way.
    void begin(std::chrono::milliseconds adopted);

    // A round under way is not waited for any more.
    void forget() noexcept { round_.reset(); }

    // The report of a round that is over, once; `wanted` stays zero.
    [[nodiscard]] std::optional<coordination::lease_report> take();

private:
    // Outlives this as long as a shard has a question of it.
    struct round {
        std::mutex mutex;  // guards what follows
        std::size_t left = 0;
        coordination::lease_report found;
    };

    const shard_surroundings* around_;
    std::shared_ptr<std::function<void()>> answered_;
    std::shared_ptr<round> round_;  // null: none under way
};

}  // namespace monolock::server
