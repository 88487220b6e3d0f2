#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/admin/api_call.hpp"
#include "server/admin/event_stream.hpp"
#include "server/admin/listing.hpp"
#include "server/admin/survey.hpp"
#include "server/failover/coordinator.hpp"
#include "server/http/connection.hpp"
#include "server/shard.hpp"

namespace monolock::server::admin {

// What /api/info says of the configuration; addresses as they were bound, empty for off.
struct configured {
    std::string listen;
    std::string ops_listen;
    std::string admin_listen;
    bool tls = false;
    bool mutual_tls = false;
    std::string acl_file;
    std::string audit_log;
    std::chrono::milliseconds io_timeout{0};
    std::size_t threads = 0;
};

// What /api/info says of the server besides what its shards count.
struct standing {
    std::string_view state;      // health::state()
    bool delays_grants = false;  // it serves, and claims only queue yet
    std::uint64_t sessions_max = 0;
    std::uint64_t acl_denials = 0;
    std::uint64_t accept_errors = 0;
    std::uint64_t tls_handshake_errors = 0;
    std::uint64_t audit_lost_events = 0;
    bool audit_is_refused = false;  // events wait in memory

    struct last_reload {
        telemetry::wall_time at;
        std::vector<std::string_view> failed;  // the parts that kept their previous state
    };
    std::optional<last_reload> reloaded{};  // absent: not since the start
};

// The admin API (docs/openapi.yaml): executes calls by asking shards, from the control loop. A
// shard that has stalled is reported with 503 after a few seconds; an act that was asked of it does
// not happen later.
class admin_api {
public:
    // The surroundings, whose shards must remember ownership, must outlive this. The host is the
    // one that -admin-listen names; absent: a Unix socket.
    admin_api(loop& on, shard_surroundings& around, std::optional<std::string> host);
    admin_api(const admin_api&) = delete;
    admin_api& operator=(const admin_api&) = delete;
    ~admin_api() = default;

    // Before the loop runs: whom to ask how the server fares.
    void tell_of_standing(std::function<standing()> now) { standing_ = std::move(now); }
    // Before the loop runs: this server is one of several, and /api/info says what part it has.
    void tell_of_role(std::function<role_status()> role) { role_ = std::move(role); }

    // On the thread of the loop: what /api/info says, and how many event streams may be open at a
    // time, so that some connections stay free.
    void describe(configured what, std::size_t streams_max) {
        shown_ = std::move(what);
        streams_max_ = streams_max;
    }

    // What the HTTP server needs; this must outlive it.
    [[nodiscard]] http::service service(logger& log);

private:
    [[nodiscard]] http::task<http::response> answer(http::request what);
    [[nodiscard]] http::task<http::response> decide(http::request what);
    [[nodiscard]] http::task<http::response> perform(api_call what);
    [[nodiscard]] http::response info() const;
    [[nodiscard]] http::task<http::response> list(list_call what);
    [[nodiscard]] http::task<http::response> window(window_call what);
    [[nodiscard]] http::task<http::response> show(show_call what);
    [[nodiscard]] http::task<http::response> release(release_call what);
    [[nodiscard]] http::task<http::response> kick(kick_call what);
    [[nodiscard]] http::task<http::response> history(history_call what);
    [[nodiscard]] http::response events(events_call what);
    [[nodiscard]] bool make_room_for_stream();

    using found_locks = std::vector<lock_view>;
    [[nodiscard]] http::task<std::optional<found_locks>> find_locks(survey::interest what);
    [[nodiscard]] std::shared_ptr<const listing> keep(std::shared_ptr<const listing> made);
    [[nodiscard]] shard& home_of(core::name_hash hash) const;

    loop* loop_;
    shard_surroundings* around_;
    std::optional<std::string> host_;
    configured shown_;
    std::function<standing()> standing_ = [] { return standing{}; };
    std::function<role_status()> role_;  // empty: this server is the only one
    core::time_point started_at_;
    std::uint64_t listings_ = 0;
    kept_listings kept_;
    loop_timer forget_;
    std::vector<std::weak_ptr<event_stream>> streams_;  // the oldest first
    std::size_t streams_max_ = 1;
};

}  // namespace monolock::server::admin
