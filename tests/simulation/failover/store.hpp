#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "coordination/store.hpp"
#include "simulation/failover/context.hpp"

namespace monolock::simulation::failover {

// An etcd, as far as src/coordination asks anything of it: one state, in which each request is
// carried out as a whole. How requests and answers get there and back is store_link's.
class store {
public:
    using listener = std::function<void(const coordination::watch_event&)>;
    using state = std::optional<coordination::state_record>;

    explicit store(context& world) : world_{&world} {}

    // Told before each change of `state`.
    void before_each_put(
        std::function<void(const state&, const coordination::state_record&)> told) {
        told_ = std::move(told);
    }

    [[nodiscard]] coordination::answer carry_out(const coordination::request& what);

    // One watch for each server: what happens from that revision on, in order, each a while later.
    // A new one replaces it.
    void watch(int server, coordination::revision from, listener hears);
    void end_watch(int server) { watchers_.erase(server); }
    // Say whether that changed anything.
    bool break_watch(int server);
    bool silence_watch(int server);

    // By hand, while there is an active key.
    void revoke_by_hand();
    void delete_by_hand();
    void touch_by_hand();

    [[nodiscard]] const std::optional<coordination::active_entry>& active() const noexcept {
        return active_;
    }
    [[nodiscard]] const state& outliving() const noexcept { return state_; }
    // When the last of the leases there are will have ended, if nobody keeps it.
    [[nodiscard]] sim_time leases_end() const;

private:
    struct lease {
        std::chrono::seconds ttl{0};
        sim_time ends{0};
    };
    struct watcher {
        std::uint64_t number = 0;
        listener hears;
        sim_time free_at{0};
        bool silent = false;
    };

    coordination::answer grant(const coordination::grant_lease& what);
    coordination::answer keep(const coordination::keep_lease_alive& what);
    coordination::answer revoke(const coordination::revoke_lease& what);
    coordination::answer run_campaign(const coordination::campaign& what);
    coordination::answer run_renewal(const coordination::renew& what);
    coordination::answer run_resignation(const coordination::resign& what);
    [[nodiscard]] bool holds(coordination::term mine, coordination::revision known) const;
    void put_active(const coordination::active_record& value, coordination::lease_id under);
    void put_state(const coordination::state_record& value);
    void remove_active();
    void end_lease(std::int64_t id);
    void refresh(std::int64_t id, lease& which);
    void happened(const coordination::watch_event& what);
    void tell(int server, watcher& who, const coordination::watch_event& what);

    context* world_;
    std::function<void(const state&, const coordination::state_record&)> told_;
    std::int64_t revision_ = 1;
    std::int64_t leases_made_ = 1000;
    std::map<std::int64_t, lease> leases_;
    std::optional<coordination::active_entry> active_;
    coordination::lease_id under_;
    state state_;
    std::vector<std::pair<std::int64_t, coordination::watch_event>> history_;
    std::map<int, watcher> watchers_;
    std::uint64_t watches_ = 0;
};

}  // namespace monolock::simulation::failover
