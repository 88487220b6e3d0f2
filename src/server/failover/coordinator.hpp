#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "coordination/role.hpp"
#include "coordination/role_machine.hpp"
#include "etcd/gateway.hpp"
#include "server/failover/lease_survey.hpp"
#include "server/failover/mandate.hpp"
#include "server/failover/role_journal.hpp"
#include "server/failover/role_status.hpp"
#include "server/logger.hpp"
#include "server/shard.hpp"

namespace monolock::server {

// What the server does about its role; called on the coordinator's thread, in this order for each
// term: they post to the thread that does it.
struct role_orders {
    std::function<void()> open;       // listen, and serve
    std::function<void()> step_down;  // end all sessions; then call sessions_ended()
    std::function<void()> retired;    // after shut_down(): nothing is left to be done
};

// One server's part in who is active, on a thread of its own: it drives the role machine over the
// gateway to etcd, moves the mandate that the shards look at, and lets the token counter grant as
// far as etcd has confirmed.
class coordinator {
public:
    struct settings {
        coordination::role_options role;
        etcd::gateway_options etcd;
    };

    // All that is named must outlive this. The token counter must not have granted yet; it is
    // closed until a term begins, and refused grants are its to tell of here.
    coordinator(settings wishes, shard_surroundings& around, mandate& over, role_orders orders);
    coordinator(const coordinator&) = delete;
    coordinator& operator=(const coordinator&) = delete;
    ~coordinator();  // joins, without a word to etcd

    // The shards run by then. Throws std::system_error.
    void start();

    // All sessions are gone and the port is closed, after role_orders::step_down. Any thread, as
    // all that follow.
    void sessions_ended();
    // In place of that, after shut_down(): a shard has stalled, and nothing can be said for it. The
    // role is given up, but not resigned.
    void sessions_abandoned();
    // It does not become active any more. If it is not, that is all, and role_orders::retired is
    // called; else when it is no more.
    void withdraw();
    // For good: steps down if it is active, resigns if its sessions ended, and calls
    // role_orders::retired. `why` is for people; empty: an operator's order.
    void shut_down(std::string why = {});
    [[nodiscard]] role_status status() const;

private:
    using machine = coordination::role_machine;

    void run();
    void turn();
    void obey_wishes(coordination::time_point now);
    void ask_store();
    void wish(bool coordinator::*what);
    void carry_out_events();
    void publish(coordination::time_point now);
    void publish_limits(coordination::time_point now);
    void tell_grant_delay();
    void follow_watch();
    void survey_leases(coordination::time_point now);
    [[nodiscard]] coordination::time_point next_turn() const;
    [[nodiscard]] coordination::token_position position() const;

    shard_surroundings* around_;
    mandate* mandate_;
    role_orders orders_;
    std::chrono::seconds ttl_;
    bool delay_is_fixed_;
    etcd::gateway gateway_;
    machine machine_;
    lease_survey survey_;

    // Of the thread.
    std::uint64_t watch_number_ = 0;
    grant_limits limits_;
    bool granting_ = false;  // the token counter is open
    bool delay_told_ = false;
    bool finished_ = false;
    coordination::time_point survey_at_;
    std::chrono::milliseconds wanted_{0};  // the longest lease that waits for a higher limit
    bool mandate_missed_ = false;  // a shard refused a grant in the moment before it was extended
    role_journal journal_;

    mutable std::mutex mutex_;  // guards what follows
    bool sessions_ended_ = false;
    bool sessions_abandoned_ = false;
    bool withdraw_ = false;
    bool shut_down_ = false;
    std::string why_;  // shut_down_
    bool stopping_ = false;
    role_status status_;

    std::thread thread_;  // last: it uses all the others
};

}  // namespace monolock::server
