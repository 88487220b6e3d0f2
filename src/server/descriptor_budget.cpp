#include "server/descriptor_budget.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace monolock::server {

namespace {

constexpr std::uint64_t reserve_min = 8;
constexpr std::uint64_t reserve_max = 64;

// The kernel always gives the lowest free number, and at start nothing has been closed again: all
// below it are in use.
std::uint64_t descriptors_in_use() noexcept {
    const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (lowest_free < 0) {
        return std::numeric_limits<std::int32_t>::max();
    }
    ::close(lowest_free);
    return static_cast<std::uint64_t>(lowest_free);
}

}  // namespace

std::uint64_t raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        rlimit raised = limit;
        raised.rlim_cur = raised.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    return std::min<std::uint64_t>(limit.rlim_cur, std::numeric_limits<std::int32_t>::max());
}

void descriptor_budget::open(std::uint64_t limit, std::uint64_t later) noexcept {
    reserve_ = std::clamp(limit / 8, reserve_min, reserve_max);
    const std::uint64_t kept = descriptors_in_use() + later + reserve_;
    connections_max_ = limit > kept ? static_cast<std::int64_t>(limit - kept) : 0;
}

descriptor_budget::slot descriptor_budget::take() noexcept {
    if (taken_.fetch_add(1, std::memory_order_relaxed) >= connections_max_) {
        taken_.fetch_sub(1, std::memory_order_relaxed);
        return {};
    }
    return slot{*this};
}

}  // namespace monolock::server
