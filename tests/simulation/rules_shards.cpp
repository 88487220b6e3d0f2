#include <algorithm>

#include "simulation/rules.hpp"

namespace monolock::simulation {

namespace {

constexpr sim_time taken_up_within = milliseconds{5};
constexpr sim_time drain_patience = std::chrono::seconds{1};
constexpr sim_time accepted_within = milliseconds{5};
// The server tries again after 100 ms by a clock that may be ten per cent slow.
constexpr sim_time tried_again_within = milliseconds{100} * 10 / 9 + milliseconds{5};

}  // namespace

void rules::handed_over(claim_record& who, int home) {
    who.process = process_;
    who.shard = home;
    who.at = claim_record::stage::moving;
    who.handed_over_at = world_->events.now();
    moving_.push_back(who.id);
}

void rules::taken_up(claim_record& who, sim_time runs_since) {
    check_move(who, runs_since);
    who.at = claim_record::stage::outside;
    std::erase(moving_, who.id);
}

void rules::look_for_moves(int shard, sim_time runs_since) const {
    for (const std::uint32_t id : moving_) {
        if (records_[id].shard == shard) {
            check_move(records_[id], runs_since);
        }
    }
}

void rules::check_move(const claim_record& who, sim_time runs_since) const {
    const sim_time waits = world_->events.now() - std::max(who.handed_over_at, runs_since);
    if (waits > taken_up_within) {
        fail(rule::move_arrives, who,
             "was handed over to shard " + std::to_string(who.shard) + " " +
                 std::to_string(waits.count()) + " ns ago");
    }
}

// A shard that has stalled is not waited for without end.
void rules::check_drain(const claim_record& who) const {
    const bool all_withhold = std::all_of(shards_.begin(), shards_.end(),
                                          [](const shard_book& one) { return one.withheld; });
    if (!all_withhold && world_->events.now() - *shutdown_began_ < drain_patience) {
        fail(rule::drain_in_step, who, "is ended while another shard still grants");
    }
}

void rules::left_in_backlog(const claim_record& who, sim_time waited, sim_time known) const {
    if (waited > (known > tried_again_within ? accepted_within : tried_again_within)) {
        fail(rule::accepted_in_time, who,
             "waits in the backlog for " + std::to_string(waited.count()) +
                 " ns, and there are descriptors");
    }
}

void rules::descriptors(int open, int counted, int limit) const {
    if (open > limit) {
        world_->log.fail(rule::descriptor_limit, std::to_string(open) + " connections are open, " +
                                                     std::to_string(limit) + " are allowed");
    }
    if (open != counted) {
        world_->log.fail(rule::descriptors_balance,
                         std::to_string(open) + " connections are open, the server counts " +
                             std::to_string(counted));
    }
}

}  // namespace monolock::simulation
