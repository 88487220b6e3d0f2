#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace monolock::bench {

// The measured process, seen through the kernel's accounts of it.
class server_process {
public:
    // 0 is nobody, whose CPU time is none: a server that will be killed and started again.
    explicit server_process(pid_t pid) : pid_{pid} {}

    // CPU time of all its threads, user and system, in nanoseconds where the kernel keeps them
    // (/proc/PID/task/*/schedstat), in clock ticks otherwise. The account of a thread that runs at
    // this moment lags by up to a tick, so read it when the server is idle: see settled_cpu_time.
    // Loopback delivery runs in the sender's context and is the sender's cost.
    [[nodiscard]] std::chrono::nanoseconds cpu_time() const;

    // Waits until the process has done with what was sent to it (two readings 20 ms apart that
    // agree within 100 µs, which a timer tick may take; at most 2 s) and returns the reading.
    [[nodiscard]] std::chrono::nanoseconds settled_cpu_time() const;

    // Resident memory, counted page by page (/proc/PID/smaps_rollup): the kernel's quick figure is
    // off by up to 64 pages for each core.
    [[nodiscard]] std::size_t resident_bytes() const;

private:
    pid_t pid_;
};

}  // namespace monolock::bench
