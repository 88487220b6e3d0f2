#pragma once

#include <atomic>

#include "core/session_port.hpp"
#include "posix/boot_time.hpp"

namespace monolock::server {

// Until when this server may act as the one that is active. The coordinator's thread moves the
// deadline, every shard looks at it, each with a reading of its own: a server that stood still
// through the deadline finds that out by itself, however its threads are woken.
class mandate final : public core::mandate_port {
public:
    // On any thread.
    [[nodiscard]] bool in_force() noexcept override {
        return posix::boot_now().time_since_epoch().count() <
               until_.load(std::memory_order_acquire);
    }

    // It is in force at readings before that.
    void extend_to(coordination::time_point until) noexcept {
        until_.store(until.time_since_epoch().count(), std::memory_order_release);
    }
    void end() noexcept { until_.store(0, std::memory_order_release); }

private:
    std::atomic<coordination::nanoseconds::rep> until_{0};
};

}  // namespace monolock::server
