#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "posix/descriptor.hpp"
#include "server/logger.hpp"
#include "server/loop.hpp"
#include "server/service_environment.hpp"

namespace monolock::server {

// Tells the service manager how the server fares, in the protocol of sd_notify(3); without one
// every call does nothing. A message that it does not take at once is lost: nothing here ever waits
// for it, and no message needs a new descriptor. Used by the thread of its loop.
//
// A status is one line for people, as `systemctl status` shows it.
class service_manager {
public:
    // The service manager that the environment tells of. One that cannot be told anything is said
    // in the log, once. The log must outlive this.
    service_manager(loop& on, logger& log);

    // The server listens, and everything is loaded.
    void ready(std::string_view status);

    // A reload begins; it ends with ready(), whatever came of it.
    void reloading();

    // The server goes away, which may take so long. From then on neither of the above is told any
    // more: there is no way back.
    void stopping(std::chrono::nanoseconds time_max, std::string_view status);

    void status(std::string_view text);

    // Whether the service manager takes the server for dead and restarts it when it hears nothing
    // for a while.
    [[nodiscard]] bool watches() const noexcept { return patience_.has_value(); }

    // If it watches, tells it from now on that the server lives, twice as often as it must, except
    // while `is_well` denies it.
    void keep_alive_while(std::function<bool()> is_well);

private:
    void send(const std::string& message);
    void complain(std::string_view why);
    void await_turn();

    posix::descriptor socket_;  // none: there is nobody to tell
    unix_name address_;
    loop_timer timer_;
    std::optional<std::chrono::microseconds> patience_;
    std::function<bool()> is_well_;
    logger* log_;
    bool stopping_ = false;
    bool complained_ = false;
};

}  // namespace monolock::server
