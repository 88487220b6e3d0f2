#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>

#include "telemetry/counter.hpp"

namespace monolock::server {

// Families in the words of prometheus-cpp, for those who fill them.

// Exact up to 2^53, as every number of the format.
[[nodiscard]] inline double number(std::uint64_t value) noexcept {
    return static_cast<double>(value);
}

[[nodiscard]] prometheus::MetricFamily gauge_family(std::string name, std::string help,
                                                    double value);
[[nodiscard]] prometheus::MetricFamily counter_family(std::string name, std::string help,
                                                      double value);

// With one sample for each value of a label, to be added.
[[nodiscard]] prometheus::MetricFamily empty_counter_family(std::string name, std::string help);
void add_counter(prometheus::MetricFamily& to, std::string label, std::string label_value,
                 double value);

// A summary of _sum and _count.
[[nodiscard]] prometheus::MetricFamily summary_family(std::string name, std::string help,
                                                      std::uint64_t count, double sum);

template <std::size_t Count>
[[nodiscard]] prometheus::MetricFamily histogram_family(
    std::string name, std::string help, const telemetry::bucket_bounds<Count>& bounds,
    const telemetry::histogram_reading<Count>& reading) {
    prometheus::ClientMetric sample;
    for (std::size_t index = 0; index < Count; ++index) {
        sample.histogram.sample_count += reading.counts[index];
        sample.histogram.bucket.push_back(
            {.cumulative_count = sample.histogram.sample_count,
             .upper_bound = std::chrono::duration<double>{bounds[index]}.count()});
    }
    sample.histogram.sample_count += reading.counts.back();
    sample.histogram.sample_sum = reading.sum.count();
    return {.name = std::move(name),
            .help = std::move(help),
            .type = prometheus::MetricType::Histogram,
            .metric = {std::move(sample)}};
}

}  // namespace monolock::server
