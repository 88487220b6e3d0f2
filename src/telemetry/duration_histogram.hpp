#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace monolock::telemetry {

// How long something took, many times over, in little memory: buckets a sixteenth of their size
// wide, from a millisecond up. Percentiles are up to 6 % too large, never too small; the largest is
// exact.
class duration_histogram {
public:
    using milliseconds = std::chrono::milliseconds;

    // Not negative.
    void add(milliseconds duration);
    void add(const duration_histogram& other);

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    // The smallest bound that this share of the durations, 0 to 1, does not exceed; 0 of nothing.
    [[nodiscard]] milliseconds percentile(double share) const noexcept;
    // How many there are up to each bound, from the one before it on: those that are not empty,
    // from the smallest.
    [[nodiscard]] std::vector<std::pair<milliseconds, std::uint64_t>> buckets() const;
    [[nodiscard]] milliseconds largest() const noexcept { return largest_; }

private:
    std::vector<std::uint64_t> buckets_;  // as far as they are needed
    std::uint64_t count_ = 0;
    milliseconds largest_{0};
};

}  // namespace monolock::telemetry
