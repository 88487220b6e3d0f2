#pragma once

#include <monolock/boot_clock.hpp>

#include "posix/descriptor.hpp"

namespace monolock::cli {

// A descriptor that becomes readable at a moment of the boot clock. A poll timeout would not do: it
// stands still while the machine is suspended, and the deadlines of a lock do not.
class boot_timer {
public:
    // Throws std::system_error.
    boot_timer();

    // Replaces the moment set before; one in the past is due at once, time_point::max() never. What
    // was due and not looked at is forgotten.
    void set(boot_clock::time_point when) noexcept;

    [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

private:
    posix::descriptor fd_;
};

}  // namespace monolock::cli
