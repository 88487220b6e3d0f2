#include "server/service_manager.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "posix/environment.hpp"

namespace monolock::server {

namespace {

using std::chrono::microseconds;

// Whoever asks for more signs of life than this gets no more.
constexpr microseconds interval_min{10'000};

std::string with_status(std::string assignments, std::string_view status) {
    return std::move(assignments) + "\nSTATUS=" + std::string{status};
}

// steady_clock is CLOCK_MONOTONIC here, by which the service manager tells this reload from an
// earlier one.
std::string monotonic_now() {
    const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
    return std::to_string(std::chrono::duration_cast<microseconds>(since_boot).count());
}

}  // namespace

service_manager::service_manager(loop& on, logger& log)
    : timer_{on}, patience_{watchdog_patience(std::getenv, ::getpid())}, log_{&log} {
    const std::string_view where = posix::variable("NOTIFY_SOCKET");
    if (where.empty()) {
        return;
    }
    const auto name = notify_address(where);
    if (!name) {
        complain("NOTIFY_SOCKET is no address of a Unix socket");
        return;
    }
    address_ = *name;
    socket_ = posix::descriptor{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
}

void service_manager::ready(std::string_view status) {
    if (!stopping_) {
        send(with_status("READY=1", status));
    }
}

void service_manager::reloading() {
    if (!stopping_) {
        send(with_status("RELOADING=1\nMONOTONIC_USEC=" + monotonic_now(),
                         "reading the configured files again"));
    }
}

void service_manager::stopping(std::chrono::nanoseconds time_max, std::string_view status) {
    stopping_ = true;
    const auto extension = std::chrono::ceil<microseconds>(time_max).count();
    send(with_status("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(extension), status));
}

void service_manager::status(std::string_view text) {
    send("STATUS=" + std::string{text});
}

void service_manager::keep_alive_while(std::function<bool()> is_well) {
    is_well_ = std::move(is_well);
    if (patience_) {
        await_turn();
    }
}

// sd_notify would wait for a service manager that is stuck, and this thread has signals and
// administrators to serve (docs/decisions/0016).
void service_manager::send(const std::string& message) {
    if (socket_ &&
        ::sendto(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address_.address), address_.size) < 0) {
        complain(std::generic_category().message(errno));
    }
}

void service_manager::complain(std::string_view why) {
    if (!std::exchange(complained_, true)) {
        log_->write(telemetry::log_level::warn, "the service manager cannot be told how it goes",
                    {{.key = "notify_socket", .value = posix::variable("NOTIFY_SOCKET")},
                     {.key = "reason", .value = why}});
    }
}

void service_manager::await_turn() {
    timer_.expires_after(std::max(*patience_ / 2, interval_min));
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (stopped) {
            return;
        }
        if (is_well_()) {
            send("WATCHDOG=1");
        }
        await_turn();
    });
}

}  // namespace monolock::server
