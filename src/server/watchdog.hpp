#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "server/logger.hpp"
#include "server/loop.hpp"

namespace monolock::server {

// Sees whether the shards' loops still turn. It posts a question to each from time to time, so a
// shard pays for an answer twice a second and for nothing else. Time is counted in turns of its own
// loop: when the whole process stood still, no shard is blamed. Used by the thread of its loop.
class watchdog {
public:
    static constexpr std::chrono::milliseconds interval_default{500};
    // So many questions in a row without an answer: a loop has not turned for five seconds.
    static constexpr int unanswered_max = 10;

    // Has the shard of that number call `answer` from its loop.
    using asker = std::function<void(std::size_t number, std::function<void()> answer)>;

    // Before it is destroyed the shards must have stopped. Another interval is for tests.
    watchdog(loop& on, std::size_t shards, asker ask, logger& log,
             std::chrono::milliseconds interval = interval_default);

    void start();

    // False from the moment at which one of them has not turned for too long until it does again.
    [[nodiscard]] bool all_turn() const noexcept { return stalled_ == 0; }

private:
    struct probe {
        std::atomic<bool> answered{false};
        int unanswered = 0;
    };

    void await_turn();
    void turn();
    void ask(std::size_t number);
    void judge(std::size_t number);

    loop_timer timer_;
    std::chrono::milliseconds interval_;
    std::size_t shards_;
    std::unique_ptr<probe[]> probes_;
    asker ask_;
    logger* log_;
    std::size_t stalled_ = 0;
};

}  // namespace monolock::server
