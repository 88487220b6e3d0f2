#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/role.hpp"
#include "coordination/time.hpp"
#include "server/failover/role_status.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::server {

// What an operator should read in the log of a server's role without asking for it: who is active,
// that this server waits for its turn or lost it, that etcd fails and that it works again. It is
// shown each status and writes what has changed. What repeats itself is written once: a reason is
// when it is another than before, and each minute that it lasts. Used by one thread.
class role_journal {
public:
    using writer = std::function<void(telemetry::log_level, std::string_view message,
                                      std::initializer_list<telemetry::log_field>)>;

    role_journal(std::string own_name, writer write);

    void tell(const role_status& now, coordination::time_point at);

private:
    void tell_holder(const role_status& now);
    void tell_waiting(const role_status& now);
    void tell_trouble(const role_status& now, coordination::time_point at);

    std::string name_;
    writer write_;
    std::string holder_;                           // the last that was told of
    std::optional<coordination::term> waited_in_;  // told of
    std::string loss_;    // before it was active, told of; empty: none since it was active
    std::string reason_;  // of etcd's failures, told of and lasting; empty: none
    std::optional<coordination::time_point> reason_at_;
    std::uint64_t errors_ = 0;
    coordination::role role_ = coordination::role::standby;
};

}  // namespace monolock::server
