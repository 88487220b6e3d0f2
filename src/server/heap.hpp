#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "server/loop.hpp"

namespace monolock::server {

// Makes the C library's allocator merge blocks as they are freed. Once, before there are threads.
void prepare_heap() noexcept;

// Gives the system back whatever pages nobody uses. Threads that allocate meanwhile may have to
// wait: with prepare_heap() some 35 ms when a million sessions have left.
void trim_heap() noexcept;

// Tells when a crowd has left.
class crowd_gauge {
public:
    // What is not worth a trim: half a megabyte of sessions.
    static constexpr std::uint64_t few = 1000;

    // Whether at least half of the sessions, and not just a few, have left since there were most of
    // them, or since this was last true. `most` is how many there were at one time since the last
    // question, so that a crowd is not missed that came and left in between.
    [[nodiscard]] bool has_left(std::uint64_t most, std::uint64_t sessions) noexcept;

private:
    std::uint64_t peak_ = 0;
};

// Trims the heap when a crowd of sessions has left: the C library would keep their memory, for as
// many that may never come again. Looks from time to time. Used by the thread of its loop.
class heap_keeper {
public:
    static constexpr std::chrono::seconds interval{2};

    // What is there now, and the most since the last look.
    struct crowd {
        std::uint64_t most = 0;
        std::uint64_t sessions = 0;
    };

    heap_keeper(loop& on, std::function<crowd()> count) : timer_{on}, count_{std::move(count)} {}

    void start() { await_turn(); }

private:
    void await_turn();

    loop_timer timer_;
    std::function<crowd()> count_;
    crowd_gauge gauge_;
};

}  // namespace monolock::server
