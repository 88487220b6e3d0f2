#include "server/admin/activity.hpp"

namespace monolock::server::admin {

activity activity_of(const shard_surroundings& around) {
    activity all;
    for (const auto& each : around.shards) {
        const shard_counters& of = each->counters();
        const std::uint64_t sessions = of.sessions();
        const std::uint64_t owning = of.locks_held();
        all.locks += owning;
        all.sessions += sessions;
        all.waiters += sessions > owning ? sessions - owning : 0;
        all.grants += of.waits().read().count();
        all.releases += of.holds().read().count();
        all.heartbeats += of.heartbeats();
    }
    return all;
}

}  // namespace monolock::server::admin
