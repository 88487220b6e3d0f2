#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace monolock::bench {

// Every single latency of a run, so that a percentile is one that occurred and not a bucket's edge.
class latencies {
public:
    // Values that a histogram does not tell apart.
    struct bucket {
        std::chrono::nanoseconds highest;  // of the values that belong here
        std::size_t count;
    };

    void add(std::chrono::nanoseconds value) { values_.push_back(value); }
    void add(const latencies& more) {
        values_.insert(values_.end(), more.values_.begin(), more.values_.end());
    }
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

    // The buckets that are not empty, ascending, as an HDR histogram of three significant digits
    // has them: 2,048 for the smallest values and 1,024 for each doubling. Reorders the values.
    [[nodiscard]] std::vector<bucket> histogram() {
        std::sort(values_.begin(), values_.end());
        std::vector<bucket> buckets;
        for (const auto value : values_) {
            const auto highest = highest_alike(value);
            if (buckets.empty() || buckets.back().highest != highest) {
                buckets.push_back({.highest = highest, .count = 0});
            }
            ++buckets.back().count;
        }
        return buckets;
    }

private:
    static std::chrono::nanoseconds highest_alike(std::chrono::nanoseconds value) noexcept {
        constexpr int bits_kept = 11;
        const auto bits = static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 0));
        const int dropped = std::max(static_cast<int>(std::bit_width(bits)) - bits_kept, 0);
        const auto below = (std::uint64_t{1} << static_cast<unsigned>(dropped)) - 1;
        return std::chrono::nanoseconds{static_cast<std::int64_t>(bits | below)};
    }

    std::vector<std::chrono::nanoseconds> values_;
};

}  // namespace monolock::bench
