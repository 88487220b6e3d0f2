#include "server/heap.hpp"

#include <cstdlib>  // __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>

namespace monolock::server {

// glibc keeps small blocks apart when they are freed, and never shrinks the heap of a thread as
// long as one block is left at its end, which its caches see to. Left to itself it gives back
// nothing of a million sessions; trimmed without merging before, it takes seven times as long.
#ifdef __GLIBC__

void prepare_heap() noexcept {
    ::mallopt(M_MXFAST, 0);
    // The default, but for good: by itself it rises with the largest block ever freed, to 64 MiB.
    ::mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}

void trim_heap() noexcept {
    ::malloc_trim(0);
}

#else

void prepare_heap() noexcept {}

void trim_heap() noexcept {}

#endif

bool crowd_gauge::has_left(std::uint64_t most, std::uint64_t sessions) noexcept {
    peak_ = std::max({peak_, most, sessions});
    if (peak_ - sessions < few || sessions > peak_ / 2) {
        return false;
    }
    peak_ = sessions;
    return true;
}

void heap_keeper::await_turn() {
    timer_.expires_after(interval);
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (stopped) {
            return;
        }
        const crowd now = count_();
        if (gauge_.has_left(now.most, now.sessions)) {
            trim_heap();
        }
        await_turn();
    });
}

}  // namespace monolock::server
