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
        all.handovers += of.handovers().read().count();
        all.releases += of.holds().read().count();
        all.heartbeats += of.heartbeats();
        all.connections += of.connections_accepted();
        for (std::size_t index = 0; index < end_reasons.size(); ++index) {
            all.ends[index] += of.releases(end_reasons[index]);
        }
        for (std::size_t index = 0; index < error_codes.size(); ++index) {
            all.client_errors += protocol::is_temporary(error_codes[index]) ? 0 : of.errors(index);
        }
    }
    return all;
}

}  // namespace monolock::server::admin
