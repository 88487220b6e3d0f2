#include "server/reload.hpp"

#include <utility>

namespace monolock::server {

using telemetry::log_level;

void reload::add(std::string_view name, loader load) {
    parts_.push_back({.name = name, .load = std::move(load), .failures = 0});
}

void reload::settle_by(std::function<void(callback)> how, std::chrono::milliseconds patience) {
    settle_ = std::move(how);
    patience_ = patience;
}

void reload::request() {
    switch (stage_) {
        case stage::idle:
            break;
        case stage::waiting:
            return;  // the load to come will see what this one was sent for
        case stage::settling:
            again_ = true;
            return;
        case stage::closed:
            log_->write(log_level::info, "reload ignored: the server is shutting down");
            return;
    }
    if (std::chrono::steady_clock::now() >= next_) {
        load_all();
        return;
    }
    stage_ = stage::waiting;
    timer_.expires_at(next_);
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped && stage_ == stage::waiting) {
            stage_ = stage::idle;
            load_all();
        }
    });
}

void reload::close() {
    stage_ = stage::closed;
    timer_.cancel();
}

std::uint64_t reload::failures(std::string_view name) const noexcept {
    for (const part& each : parts_) {
        if (each.name == name) {
            return each.failures;
        }
    }
    return 0;
}

void reload::load_all() {
    observer_.begins();
    if (parts_.empty()) {
        log_->write(log_level::info, "reload: nothing is configured that could be read again");
    }
    for (part& each : parts_) {
        outcomes_.push_back({.of = &each, .what = each.load()});
        each.failures += outcomes_.back().what ? 0U : 1U;
    }
    stage_ = stage::settling;
    timer_.expires_after(patience_);
    timer_.async_wait([this, load = ++loads_](const boost::system::error_code& stopped) {
        if (!stopped) {
            tell(load);
        }
    });
    settle_([this, load = loads_] { tell(load); });
}

// Whichever of the two comes first, that it has settled or that this took too long. At the server's
// end the log alone is told.
void reload::tell(std::uint64_t load) {
    if (load != loads_) {
        return;
    }
    std::vector<std::string_view> failed;
    for (const outcome& each : std::exchange(outcomes_, {})) {
        if (!tell_of(each)) {
            failed.push_back(each.of->name);
        }
    }
    ++loads_;
    if (stage_ == stage::closed) {
        return;
    }
    timer_.cancel();
    stage_ = stage::idle;
    next_ = std::chrono::steady_clock::now() + pause;
    observer_.ended(failed);
    if (std::exchange(again_, false)) {
        request();
    }
}

bool reload::tell_of(const outcome& which) {
    if (which.what) {
        log_->write(
            log_level::info, "reloaded",
            {{.key = "part", .value = which.of->name}, {.key = "now", .value = *which.what}});
        return true;
    }
    const std::string why = config::joined(which.what.error());
    log_->write(log_level::error, "reload failed, what was in force stays",
                {{.key = "part", .value = which.of->name},
                 {.key = "reason", .value = why},
                 {.key = "reload_failures", .value = which.of->failures}});
    return false;
}

}  // namespace monolock::server
