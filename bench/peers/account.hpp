#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace monolock::bench::peers {

// What a peer spends, over all its processes: PostgreSQL starts one for each connection, and they
// come and go.
class account {
public:
    // `cgroup` is the folder of a control group (version 2) that holds the peer alone. If it is
    // empty, the peer is `root` and all that descend from it.
    account(pid_t root, std::string cgroup) : root_{root}, cgroup_{std::move(cgroup)} {}

    // User and system time of the processes that are and of those that were: in microseconds with a
    // control group, otherwise in clock ticks.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const;

    // Waits until the peer has done with what was sent to it and returns the reading. What a peer
    // does on its own is taken for rest as long as it is less than a twentieth of a core; throws
    // measurement_error if it is not within 5 s.
    [[nodiscard]] std::chrono::nanoseconds settled_cpu_time() const;

    // Resident memory, what the processes share counted once (the sum of their Pss).
    [[nodiscard]] std::size_t resident_bytes() const;

    // The same with connections that have just fallen silent, whose buffers a peer keeps for a
    // while: waits for `patience`, and then until two readings a second apart do not fall any more,
    // at most 10 s.
    [[nodiscard]] std::size_t settled_resident_bytes(std::chrono::nanoseconds patience) const;

private:
    [[nodiscard]] std::vector<pid_t> processes() const;

    pid_t root_;
    std::string cgroup_;
};

}  // namespace monolock::bench::peers
