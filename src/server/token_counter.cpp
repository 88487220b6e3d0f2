#include "server/token_counter.hpp"

#include <algorithm>
#include <chrono>

namespace monolock::server {

namespace {

// A clock before 1970 is a clock that knows nothing: the counter alone then goes on.
std::uint64_t unix_milliseconds() noexcept {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count()));
}

}  // namespace

core::fencing_token token_counter::next() noexcept {
    const std::uint64_t now_ms = unix_milliseconds();
    std::uint64_t previous = last_.load(std::memory_order_relaxed);
    core::fencing_token token;
    do {
        token = core::next_token({previous}, now_ms);
    } while (!last_.compare_exchange_weak(previous, token.value, std::memory_order_relaxed));
    return token;
}

}  // namespace monolock::server
