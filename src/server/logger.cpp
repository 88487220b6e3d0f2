#include "server/logger.hpp"

#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <semaphore>
#include <string>
#include <vector>

#include "posix/whole_io.hpp"

namespace monolock::server {

namespace {

constexpr std::size_t lines_queued_max = 8192;
constexpr std::chrono::seconds drain_time_max{1};

}  // namespace

std::optional<std::uint64_t> log_gate::pass(std::chrono::steady_clock::time_point now) noexcept {
    const auto ticks = now.time_since_epoch().count();
    auto due = next_.load();
    if (ticks < due || !next_.compare_exchange_strong(due, ticks + interval_.count())) {
        ++suppressed_;
        return std::nullopt;
    }
    return suppressed_.exchange(0);
}

// Writes to the descriptor and not through stdio, whose lock the end of the process would wait for.
class logger::sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    // Whether all that was logged before a flush() has been written within the time.
    [[nodiscard]] bool flushed_within(std::chrono::milliseconds time) {
        return flushed_.try_acquire_for(time);
    }

private:
    void sink_it_(const spdlog::details::log_msg& line) override {
        // If it fails, nobody is there to be told.
        static_cast<void>(
            posix::write_all(STDERR_FILENO, {line.payload.data(), line.payload.size()}));
    }
    void flush_() override { flushed_.release(); }

    std::counting_semaphore<> flushed_{0};
};

logger::logger(telemetry::log_level least, telemetry::log_format format)
    : least_{least},
      format_{format},
      sink_{std::make_shared<sink>()},
      writer_{std::make_shared<spdlog::details::thread_pool>(lines_queued_max, 1)},
      out_{std::make_shared<spdlog::async_logger>("monolock", sink_, writer_,
                                                  spdlog::async_overflow_policy::overrun_oldest)} {
    out_->set_level(spdlog::level::trace);
}

logger::~logger() {
    // A reader of standard error that went to sleep must not keep the server from ending: what it
    // does not take in time is lost, together with the thread that waits for it.
    if (!flush()) {
        // Never joined and never destroyed, but not lost track of either.
        static const auto* const abandoned = new std::shared_ptr{std::move(writer_)};
        static_cast<void>(abandoned);
        return;
    }
    // Joins the thread, so that what it still held of the logger is gone before the rest: otherwise
    // the thread may be the one to destroy it, inside the library, where ThreadSanitizer does not
    // see the counting of references and reports a race.
    writer_.reset();
}

bool logger::flush() {
    out_->flush();
    return sink_->flushed_within(drain_time_max);
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
