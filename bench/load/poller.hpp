#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "load/sockets.hpp"

namespace monolock::bench {

// An epoll set whose members are known by an index of the caller's.
class poller {
public:
    poller();

    // Reports each arrival on the descriptor once (edge triggered), until the descriptor is closed.
    void add(int fd, std::size_t index);
    // The same for one that is not connected yet: that it is now, or was refused, is reported, too.
    void add_connecting(int fd, std::size_t index);

    // Waits for arrivals, at most for `patience` (nanoseconds count; without it, 10 s and then
    // throws: a server that stopped answering spoils the run). The result is valid until the next
    // call.
    [[nodiscard]] std::span<const epoll_event> wait(
        std::optional<std::chrono::nanoseconds> patience = std::nullopt);

    [[nodiscard]] static std::size_t index_of(const epoll_event& event) noexcept {
        return event.data.u64;
    }

private:
    void watch(int fd, std::size_t index, std::uint32_t events);

    unique_fd epoll_;
    std::vector<epoll_event> events_;
};

}  // namespace monolock::bench
