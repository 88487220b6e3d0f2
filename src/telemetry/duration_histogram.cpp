#include "telemetry/duration_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace monolock::telemetry {

namespace {

// Values below this have a bucket each; from there on each doubling has half as many.
constexpr std::uint64_t exact_below = 32;
constexpr std::size_t per_doubling = 16;
constexpr auto exact_bits = static_cast<std::size_t>(std::bit_width(exact_below) - 1);

std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < exact_below) {
        return value;
    }
    const auto shift = static_cast<std::size_t>(std::bit_width(value)) - exact_bits;
    return exact_below + (shift - 1) * per_doubling + (value >> shift) - per_doubling;
}

// The largest value in the bucket.
std::uint64_t bound_of(std::size_t bucket) noexcept {
    if (bucket < exact_below) {
        return bucket;
    }
    const std::size_t shift = (bucket - exact_below) / per_doubling + 1;
    const std::uint64_t within = (bucket - exact_below) % per_doubling + per_doubling;
    return ((within + 1) << shift) - 1;
}

}  // namespace

void duration_histogram::add(milliseconds duration) {
    const std::size_t bucket = bucket_of(static_cast<std::uint64_t>(duration.count()));
    buckets_.resize(std::max(buckets_.size(), bucket + 1));
    ++buckets_[bucket];
    ++count_;
    largest_ = std::max(largest_, duration);
}

void duration_histogram::add(const duration_histogram& other) {
    buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
    for (std::size_t bucket = 0; bucket < other.buckets_.size(); ++bucket) {
        buckets_[bucket] += other.buckets_[bucket];
    }
    count_ += other.count_;
    largest_ = std::max(largest_, other.largest_);
}

duration_histogram::milliseconds duration_histogram::percentile(double share) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        seen += buckets_[bucket];
        if (seen >= wanted && seen > 0) {
            return std::min(milliseconds{bound_of(bucket)}, largest_);
        }
    }
    return largest_;
}

std::vector<std::pair<duration_histogram::milliseconds, std::uint64_t>>
duration_histogram::buckets() const {
    std::vector<std::pair<milliseconds, std::uint64_t>> out;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        if (buckets_[bucket] > 0) {
            out.emplace_back(bound_of(bucket), buckets_[bucket]);
        }
    }
    return out;
}

}  // namespace monolock::telemetry
