#include "monolock/boot_clock.hpp"

#include "posix/boot_time.hpp"

namespace monolock {

boot_clock::time_point boot_clock::now() noexcept {
    return posix::read_boot_clock<boot_clock>();
}

}  // namespace monolock
