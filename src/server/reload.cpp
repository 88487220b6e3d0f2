#include "server/reload.hpp"

#include <utility>

namespace monolock::server {

using telemetry::log_level;

void reload::add(std::string_view name, loader load) {
    parts_.push_back({.name = name, .load = std::move(load), .failures = 0});
}

void reload::request() {
    switch (stage_) {
        case stage::idle:
            break;
        case stage::waiting:
            return;  // the load to come will see what this one was sent for
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
    std::vector<std::string_view> failed;
    for (part& each : parts_) {
        if (!load(each)) {
            failed.push_back(each.name);
        }
    }
    observer_.ended(failed);
    next_ = std::chrono::steady_clock::now() + pause;
}

bool reload::load(part& which) {
    const config::checked<std::string> outcome = which.load();
    if (outcome) {
        log_->write(log_level::info, "reloaded",
                    {{.key = "part", .value = which.name}, {.key = "now", .value = *outcome}});
        return true;
    }
    ++which.failures;
    const std::string why = config::joined(outcome.error());
    log_->write(log_level::error, "reload failed, what was in force stays",
                {{.key = "part", .value = which.name},
                 {.key = "reason", .value = why},
                 {.key = "reload_failures", .value = which.failures}});
    return false;
}

}  // namespace monolock::server
