#include "server/watchdog.hpp"

#include <cstdint>
#include <utility>

namespace monolock::server {

using telemetry::log_level;

watchdog::watchdog(loop& on, std::size_t shards, asker ask, logger& log,
                   std::chrono::milliseconds interval)
    : timer_{on},
      interval_{interval},
      shards_{shards},
      probes_{std::make_unique<probe[]>(shards)},
      ask_{std::move(ask)},
      log_{&log} {}

void watchdog::start() {
    for (std::size_t number = 0; number < shards_; ++number) {
        ask(number);
    }
    await_turn();
}

void watchdog::await_turn() {
    timer_.expires_after(interval_);
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            turn();
        }
    });
}

void watchdog::turn() {
    for (std::size_t number = 0; number < shards_; ++number) {
        judge(number);
    }
    await_turn();
}

void watchdog::ask(std::size_t number) {
    ask_(number, [&answered = probes_[number].answered] { answered = true; });
}

void watchdog::judge(std::size_t number) {
    probe& of = probes_[number];
    if (of.answered.exchange(false)) {
        if (of.unanswered >= unanswered_max) {
            --stalled_;
            log_->write(log_level::warn, "a shard that had stalled turns again",
                        {{.key = "shard", .value = std::uint64_t{number}}});
        }
        of.unanswered = 0;
        ask(number);
        return;
    }
    if (++of.unanswered == unanswered_max) {
        ++stalled_;
        log_->write(log_level::error, "a shard has stalled: its locks are not served",
                    {{.key = "shard", .value = std::uint64_t{number}}});
    }
}

}  // namespace monolock::server
