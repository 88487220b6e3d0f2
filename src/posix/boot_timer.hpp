#pragma once

#include <chrono>

#include "posix/descriptor.hpp"

namespace monolock::posix {

// A descriptor that becomes readable at a moment of the clock that runs through suspend
// (CLOCK_BOOTTIME). A poll timeout would not do: it stands still while the machine is suspended,
// and the deadlines of a lock do not.
class boot_timer {
public:
    // Throws std::system_error.
    boot_timer();

    // Replaces the moment set before, which is a time since boot; one in the past is due at once,
    // nanoseconds::max() never. What was due and not looked at is forgotten.
    void set(std::chrono::nanoseconds since_boot) noexcept;

    [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

private:
    posix::descriptor fd_;
};

}  // namespace monolock::posix
