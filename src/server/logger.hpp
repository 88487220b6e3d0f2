#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "telemetry/log_record.hpp"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace monolock::server {

// One kind of line that is written seldom. Any thread.
class log_gate {
public:
    // One line passes in each interval.
    log_gate() noexcept : log_gate{std::chrono::seconds{5}} {}
    explicit log_gate(std::chrono::seconds interval) noexcept : interval_{interval} {}

    // Whether a line is due at `now`; if so, how many were suppressed since the last one.
    [[nodiscard]] std::optional<std::uint64_t> pass(
        std::chrono::steady_clock::time_point now) noexcept;

private:
    std::chrono::steady_clock::duration interval_;
    std::atomic<std::chrono::steady_clock::rep> next_{0};
    std::atomic<std::uint64_t> suppressed_{0};
};

// The diagnostic log, on standard error. Any thread. A line is formatted where it is written and
// handed to a thread of the log's own; if standard error does not keep up, the oldest lines are
// lost, and no shard waits (docs/decisions/0006).
class logger {
public:
    logger(telemetry::log_level least, telemetry::log_format format);
    logger(const logger&) = delete;
    logger& operator=(const logger&) = delete;
    // Writes out what is queued, for a bounded time.
    ~logger();

    // Whether a record of this level would be written; ask before making an expensive one.
    [[nodiscard]] bool writes(telemetry::log_level level) const noexcept { return level >= least_; }

    void write(telemetry::log_level level, std::string_view message,
               std::initializer_list<telemetry::log_field> fields = {});

    // For what outsiders can cause as often as they like: all calls with one gate together write at
    // most one line in its interval, which says how many it stands for.
    void write_seldom(log_gate& gate, telemetry::log_level level, std::string_view message,
                      std::initializer_list<telemetry::log_field> fields = {});

    // Writes out what is queued, for a bounded time; whether all of it is out.
    bool flush();

private:
    void submit(const telemetry::log_record& record);

    telemetry::log_level least_;
    telemetry::log_format format_;
    class sink;
    std::shared_ptr<sink> sink_;
    std::shared_ptr<spdlog::details::thread_pool> writer_;
    std::shared_ptr<spdlog::logger> out_;
};

}  // namespace monolock::server
