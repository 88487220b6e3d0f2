#include "load/timed_result.hpp"

#include <array>
#include <cstdio>

#include "load/sockets.hpp"

namespace monolock::bench {
namespace {

std::string to_json(const std::vector<latencies::bucket>& histogram) {
    std::string text;
    for (const auto& [value, count] : histogram) {
        text += text.empty() ? "[" : ", [";
        text += std::to_string(value.count()) + ", " + std::to_string(count) + "]";
    }
    return "[" + text + "]";
}

}  // namespace

double microseconds(std::chrono::nanoseconds time) noexcept {
    return std::chrono::duration<double, std::micro>(time).count();
}

std::string to_json(timed_result& result, const std::string& negotiated) {
    const auto operations = static_cast<double>(result.latency.count());
    if (operations == 0) {
        throw measurement_error("no operation was completed");
    }
    const auto seconds = std::chrono::duration<double>(result.elapsed).count();
    std::array<char, 512> figures{};
    std::snprintf(
        figures.data(), figures.size(),
        "{\"operations\": %.0f, \"seconds\": %.3f, \"per_second\": %.0f, "
        "\"cpu_us\": %.4f, \"server_busy\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
        "\"max_us\": %.1f",
        operations, seconds, operations / seconds, microseconds(result.server_cpu) / operations,
        std::chrono::duration<double>(result.server_cpu).count() / seconds,
        microseconds(result.latency.percentile(0.5)), microseconds(result.latency.percentile(0.99)),
        microseconds(result.latency.percentile(1.0)));
    return std::string{figures.data()} + ", \"histogram\": " + to_json(result.latency.histogram()) +
           ", \"tls\": \"" + negotiated + "\"}";
}

}  // namespace monolock::bench
