#include "server/metric_families.hpp"

#include <utility>

namespace monolock::server {

prometheus::MetricFamily gauge_family(std::string name, std::string help, double value) {
    prometheus::ClientMetric sample;
    sample.gauge.value = value;
    return {.name = std::move(name),
            .help = std::move(help),
            .type = prometheus::MetricType::Gauge,
            .metric = {std::move(sample)}};
}

prometheus::MetricFamily counter_family(std::string name, std::string help, double value) {
    prometheus::ClientMetric sample;
    sample.counter.value = value;
    prometheus::MetricFamily made = empty_counter_family(std::move(name), std::move(help));
    made.metric.push_back(std::move(sample));
    return made;
}

prometheus::MetricFamily empty_counter_family(std::string name, std::string help) {
    return {.name = std::move(name),
            .help = std::move(help),
            .type = prometheus::MetricType::Counter,
            .metric = {}};
}

void add_counter(prometheus::MetricFamily& to, std::string label, std::string label_value,
                 double value) {
    prometheus::ClientMetric sample;
    sample.label.push_back({.name = std::move(label), .value = std::move(label_value)});
    sample.counter.value = value;
    to.metric.push_back(std::move(sample));
}

prometheus::MetricFamily summary_family(std::string name, std::string help, std::uint64_t count,
                                        double sum) {
    prometheus::ClientMetric sample;
    sample.summary.sample_count = count;
    sample.summary.sample_sum = sum;
    return {.name = std::move(name),
            .help = std::move(help),
            .type = prometheus::MetricType::Summary,
            .metric = {std::move(sample)}};
}

}  // namespace monolock::server
