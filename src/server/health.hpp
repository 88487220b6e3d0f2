#pragma once

#include <optional>
#include <string_view>

#include "server/watchdog.hpp"

namespace monolock::server {

// What a probe of the server is told. Used by the control loop.
class health {
public:
    explicit health(const watchdog& over) noexcept : watchdog_{&over} {}

    // The server listens and its shards run.
    void begin_serving() noexcept { enter(stage::serving); }
    // Another server is active, or nobody: this one is well, and no client should come.
    void stand_by() noexcept { enter(stage::standby); }
    // From the signal on, while the shutdown delay lasts and until the process ends.
    void begin_shutdown() noexcept { stage_ = stage::shutting_down; }

    // Why the process should be replaced or left alone; nothing if it is well.
    [[nodiscard]] std::optional<std::string_view> trouble() const noexcept {
        if (stage_ == stage::shutting_down) {
            return "shutting down";
        }
        if (!watchdog_->all_turn()) {
            return "a shard has stalled";
        }
        return std::nullopt;
    }

    // Why no client should be sent here; nothing if one may come.
    [[nodiscard]] std::optional<std::string_view> unready() const noexcept {
        if (stage_ == stage::starting) {
            return "starting";
        }
        if (stage_ == stage::standby) {
            return "standby";
        }
        return trouble();
    }

    // The state in a word or two, for people and programs.
    [[nodiscard]] std::string_view state() const noexcept {
        if (stage_ != stage::shutting_down && !watchdog_->all_turn()) {
            return "stalled";
        }
        switch (stage_) {
            case stage::starting:
                return "starting";
            case stage::standby:
                return "standby";
            case stage::serving:
                return "serving";
            case stage::shutting_down:
                break;
        }
        return "shutting down";
    }

private:
    enum class stage { starting, standby, serving, shutting_down };

    // A shutdown is for good.
    void enter(stage next) noexcept {
        if (stage_ != stage::shutting_down) {
            stage_ = next;
        }
    }

    const watchdog* watchdog_;
    stage stage_ = stage::starting;
};

}  // namespace monolock::server
