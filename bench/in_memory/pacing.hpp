#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>

#include "in_memory/network.hpp"

namespace monolock::bench::in_memory {

// Calls act(i) for i from 0 to count - 1, evenly over that time, and tells the network each
// millisecond. Returns how late the latest of them was.
template <class Action>
std::chrono::nanoseconds pace(network& net, std::size_t count, std::chrono::nanoseconds over,
                              Action act) {
    constexpr std::chrono::milliseconds tick{1};
    const time_point begin = clock::now();
    const auto due = [&](std::size_t i) {
        return begin + std::chrono::duration_cast<std::chrono::nanoseconds>(
                           over * (static_cast<double>(i) / static_cast<double>(count)));
    };
    std::chrono::nanoseconds latest{0};
    for (std::size_t next = 0; next < count;) {
        const time_point now = clock::now();
        latest = std::max<std::chrono::nanoseconds>(latest, now - due(next));
        while (next < count && due(next) <= now) {
            act(next++);
        }
        net.announce();
        std::this_thread::sleep_until(now + tick);
    }
    return latest;
}

}  // namespace monolock::bench::in_memory
