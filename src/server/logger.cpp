#include "server/logger.hpp"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <string>
#include <thread>
#include <vector>

namespace monolock::server {

namespace {

constexpr std::size_t lines_queued_max = 8192;
constexpr std::chrono::seconds seldom_interval{5};
constexpr std::chrono::seconds drain_time_max{1};

}  // namespace

std::optional<std::uint64_t> log_gate::pass(std::chrono::steady_clock::time_point now) noexcept {
    const auto ticks = now.time_since_epoch().count();
    const auto after = std::chrono::steady_clock::duration{seldom_interval}.count();
    auto due = next_.load();
    if (ticks < due || !next_.compare_exchange_strong(due, ticks + after)) {
        ++suppressed_;
        return std::nullopt;
    }
    return suppressed_.exchange(0);
}

logger::logger(telemetry::log_level least, telemetry::log_format format)
    : least_{least},
      format_{format},
      writer_{std::make_shared<spdlog::details::thread_pool>(lines_queued_max, 1)},
      out_{std::make_shared<spdlog::async_logger>(
          "monolock", std::make_shared<spdlog::sinks::stderr_sink_st>(), writer_,
          spdlog::async_overflow_policy::overrun_oldest)} {
    // Our lines are complete: no prefix, no end of line of spdlog's.
    out_->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%v", spdlog::pattern_time_type::utc, std::string{}));
    out_->set_level(spdlog::level::trace);
}

logger::~logger() {
    // A reader of standard error that went to sleep must not keep the server from ending: what it
    // does not take in time is lost, together with the thread that waits for it.
    const auto deadline = std::chrono::steady_clock::now() + drain_time_max;
    while (writer_->queue_size() > 0) {
        if (std::chrono::steady_clock::now() > deadline) {
            new std::shared_ptr{std::move(writer_)};  // never joined
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

void logger::write(telemetry::log_level level, std::string_view message,
                   std::initializer_list<telemetry::log_field> fields) {
    if (writes(level)) {
        submit({.level = level, .message = message, .fields = {fields.begin(), fields.size()}});
    }
}

void logger::write_seldom(log_gate& gate, telemetry::log_level level, std::string_view message,
                          std::initializer_list<telemetry::log_field> fields) {
    if (!writes(level)) {
        return;
    }
    if (const auto suppressed = gate.pass(std::chrono::steady_clock::now())) {
        std::vector<telemetry::log_field> all{fields};
        if (*suppressed > 0) {
            all.push_back({.key = "suppressed", .value = *suppressed});
        }
        submit({.level = level, .message = message, .fields = all});
    }
}

void logger::submit(const telemetry::log_record& record) {
    std::string line;
    telemetry::format(format_, record, std::chrono::system_clock::now(), line);
    out_->log(spdlog::level::info, line);
}

}  // namespace monolock::server
