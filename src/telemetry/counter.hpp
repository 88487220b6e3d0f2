#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace monolock::telemetry {

// Numbers that one thread writes and any thread may read. The writer pays for a plain load and a
// plain store, with no locked instruction between them; so a second writer would lose counts. Each
// number is true by itself; two that are read one after the other may be moments apart.

class counter {
public:
    void add(std::uint64_t count = 1) noexcept { store(value() + count); }
    [[nodiscard]] std::uint64_t value() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }

private:
    void store(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

    std::atomic<std::uint64_t> value_{0};
};

class gauge {
public:
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t value() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> value_{0};
};

// The bounds of a histogram's buckets, each inclusive, rising; what is above the last one has a
// bucket of its own.
template <std::size_t Count>
using bucket_bounds = std::array<std::chrono::nanoseconds, Count>;

// What a histogram, or several added up, held at one moment.
template <std::size_t Count>
struct histogram_reading {
    std::array<std::uint64_t, Count + 1> counts{};  // of each bucket alone
    std::chrono::duration<double> sum{0};

    [[nodiscard]] std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t each : counts) {
            all += each;
        }
        return all;
    }

    histogram_reading& operator+=(const histogram_reading& other) noexcept {
        for (std::size_t index = 0; index < counts.size(); ++index) {
            counts[index] += other.counts[index];
        }
        sum += other.sum;
        return *this;
    }
};

// How long something took, each time it happened. Written and read as a counter is.
template <std::size_t Count>
class histogram {
public:
    // The bounds must outlive the histogram; they are constants.
    explicit histogram(const bucket_bounds<Count>& bounds) noexcept : bounds_{&bounds} {}

    // Never negative.
    void add(std::chrono::nanoseconds took) noexcept {
        std::size_t bucket = 0;
        while (bucket < Count && took > (*bounds_)[bucket]) {
            ++bucket;
        }
        counts_[bucket].add();
        // Of all holds together 2^64 nanoseconds are 584 years, which a thousand sessions reach in
        // seven months: so the sum is kept in two parts that cannot overflow.
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(took);
        seconds_.add(static_cast<std::uint64_t>(whole.count()));
        nanoseconds_.add(static_cast<std::uint64_t>((took - whole).count()));
    }

    [[nodiscard]] histogram_reading<Count> read() const noexcept {
        histogram_reading<Count> now;
        for (std::size_t index = 0; index < counts_.size(); ++index) {
            now.counts[index] = counts_[index].value();
        }
        now.sum = std::chrono::duration<double>{static_cast<double>(seconds_.value()) +
                                                static_cast<double>(nanoseconds_.value()) / 1e9};
        return now;
    }

private:
    const bucket_bounds<Count>* bounds_;
    std::array<counter, Count + 1> counts_;
    counter seconds_;
    counter nanoseconds_;
};

}  // namespace monolock::telemetry
