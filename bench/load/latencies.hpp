#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
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
        const auto wanted = std::ceil(share * static_cast<double>(values_.size()));
        const auto rank =
            std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(wanted), 1, std::ssize(values_));
        const auto at = values_.begin() + rank - 1;
        std::nth_element(values_.begin(), at, values_.end());
        return *at;
    }

private:
    std::vector<std::chrono::nanoseconds> values_;
};

}  // namespace monolock::bench
