#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace monolock::bench {

// Every single latency of a run, so that a percentile is one that occurred and not a bucket's edge.
class latencies {
public:
    void add(std::chrono::nanoseconds value) { values_.push_back(value); }
    void clear() noexcept { values_.clear(); }
    [[nodiscard]] std::size_t count() const noexcept { return values_.size(); }

    // The smallest value that at least this share (0 to 1) of all values does not exceed; zero if
    // there are none. Reorders the values.
    [[nodiscard]] std::chrono::nanoseconds percentile(double share) {
        if (values_.empty()) {
            return std::chrono::nanoseconds{0};
        }
        const auto last = values_.size() - 1;
        const auto rank = static_cast<std::size_t>(share * static_cast<double>(values_.size()));
        const auto at = values_.begin() + static_cast<std::ptrdiff_t>(std::min(rank, last));
        std::nth_element(values_.begin(), at, values_.end());
        return *at;
    }

private:
    std::vector<std::chrono::nanoseconds> values_;
};

}  // namespace monolock::bench
