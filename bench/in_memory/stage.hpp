#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "in_memory/network.hpp"
#include "server/shard.hpp"

namespace monolock::bench::in_memory {

// The CPU time that a thread has used. Any thread may ask.
class thread_cpu {
public:
    // Of the calling thread.
    thread_cpu();
    [[nodiscard]] std::chrono::nanoseconds used() const;

private:
    clockid_t clock_{};
};

// The server's shards over a network, set up as the server does; only listener and control loop are
// left out.
class stage {
public:
    stage(network& over, std::size_t shards);
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage();

    [[nodiscard]] const std::vector<std::unique_ptr<server::shard>>& shards() const noexcept {
        return around_.shards;
    }

    // Of all shards' threads together.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const;
    [[nodiscard]] std::uint64_t sessions() const;
    [[nodiscard]] std::uint64_t ended(core::end_reason why) const;  // owners

private:
    // Before there are threads.
    struct prepared_heap {
        prepared_heap();
    };

    prepared_heap heap_;
    server::logger log_;
    server::shard_surroundings around_;
    std::vector<thread_cpu> cpu_;
};

// The floor: the bare loop of the floor servers over the same network, in a thread of its own,
// which serves until the process ends.
class floor_stage {
public:
    explicit floor_stage(network& over);
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const { return cpu_.at(0).used(); }

private:
    std::vector<thread_cpu> cpu_;
};

}  // namespace monolock::bench::in_memory
