#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace monolock::server {

// The standard metrics of a process (process_*), read from /proc when collect() is called. What
// cannot be read at that moment is left out.
class process_metrics {
public:
    process_metrics();

    [[nodiscard]] std::vector<prometheus::MetricFamily> collect() const;

private:
    double start_time_seconds_ = 0;  // zero: unknown
};

}  // namespace monolock::server
