#include "core/session_port.hpp"

#include "core/assert.hpp"

namespace monolock::core {

void output_backlog::append(std::span<const std::byte> bytes, time_point now) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    parts_.push_back({.size = bytes.size(), .since = now});
}

void output_backlog::remove(std::size_t count) noexcept {
    MONOLOCK_ASSERT(count <= bytes_.size());
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count));
    auto first = parts_.begin();
    for (; first != parts_.end() && first->size <= count; ++first) {
        count -= first->size;
    }
    parts_.erase(parts_.begin(), first);
    if (count > 0) {
        parts_.front().size -= count;
    }
}

}  // namespace monolock::core
