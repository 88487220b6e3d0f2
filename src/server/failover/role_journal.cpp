#include "server/failover/role_journal.hpp"

#include <utility>

namespace monolock::server {

namespace {

using namespace std::chrono_literals;
using coordination::role;
using coordination::time_point;
using telemetry::log_level;

// Between two lines on etcd's failures: with another reason, and with the same.
constexpr std::chrono::seconds reasons_apart{5};
constexpr std::chrono::seconds same_reason_apart{60};

}  // namespace

role_journal::role_journal(std::string own_name, writer write)
    : name_{std::move(own_name)}, write_{std::move(write)} {}

void role_journal::tell(const role_status& now, time_point at) {
    tell_holder(now);
    tell_waiting(now);
    tell_trouble(now, at);
    role_ = now.role;
}

// Who has not renewed the key may be about to give it up, and to win it again.
void role_journal::tell_holder(const role_status& now) {
    if (now.role == role::active) {
        holder_ = name_;
    } else if (now.holder_has_renewed && now.active_server != name_ &&
               now.active_server != holder_) {
        holder_ = now.active_server;
        write_(log_level::info, "another server is active", {{.key = "name", .value = holder_}});
    }
}

void role_journal::tell_waiting(const role_status& now) {
    if (now.role == role::waiting && now.holder_has_renewed && now.term != waited_in_) {
        waited_in_ = now.term;
        write_(log_level::info,
               "this server has the key, and waits until the one before it is over for certain",
               {{.key = "term", .value = now.term.value_or(coordination::term{}).value},
                {.key = "waits_ms", .value = now.opens_in.count()}});
    }
    const bool lost =
        role_ == role::waiting && (now.role == role::standby || now.role == role::campaigning);
    if (lost && now.last_loss != loss_) {
        loss_ = now.last_loss;
        write_(log_level::warn, "this server lost the key before it was active",
               {{.key = "reason", .value = loss_}});
    }
    if (now.role == role::active) {
        loss_.clear();
    }
}

void role_journal::tell_trouble(const role_status& now, time_point at) {
    if (!reason_.empty() && now.last_error.empty()) {
        reason_.clear();
        write_(log_level::info, "etcd does what it is asked again",
               {{.key = "etcd_errors", .value = now.etcd_errors}});
    }
    if (std::exchange(errors_, now.etcd_errors) == now.etcd_errors || now.last_error.empty()) {
        return;
    }
    const auto apart = now.last_error == reason_ ? same_reason_apart : reasons_apart;
    if (reason_at_ && at < *reason_at_ + apart) {
        return;
    }
    reason_ = now.last_error;
    reason_at_ = at;
    write_(log_level::warn, "etcd does not do what it is asked",
           {{.key = "reason", .value = reason_}, {.key = "etcd_errors", .value = now.etcd_errors}});
}

}  // namespace monolock::server
