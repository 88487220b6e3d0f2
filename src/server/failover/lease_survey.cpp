#include "server/failover/lease_survey.hpp"

#include <algorithm>
#include <utility>

namespace monolock::server {

lease_survey::lease_survey(const shard_surroundings& around, std::function<void()> answered)
    : around_{&around}, answered_{std::make_shared<std::function<void()>>(std::move(answered))} {}

void lease_survey::begin(std::chrono::milliseconds adopted) {
    if (round_) {
        return;
    }
    round_ = std::make_shared<round>();
    round_->left = around_->shards.size();
    round_->found.adopted = adopted;
    for (const auto& each : around_->shards) {
        each->ask([one = each.get(), into = round_, answered = answered_] {
            const std::chrono::milliseconds longest = one->take_longest_lease();
            const std::scoped_lock hold{into->mutex};
            into->found.longest = std::max(into->found.longest, longest);
            if (--into->left == 0) {
                (*answered)();
            }
        });
    }
}

std::optional<coordination::lease_report> lease_survey::take() {
    if (!round_) {
        return std::nullopt;
    }
    const std::shared_ptr<round> current = round_;
    const std::scoped_lock hold{current->mutex};
    if (current->left > 0) {
        return std::nullopt;
    }
    round_.reset();
    return current->found;
}

}  // namespace monolock::server
