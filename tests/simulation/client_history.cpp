#include "simulation/client_history.hpp"

#include <algorithm>
#include <sstream>

#include "history/check.hpp"

namespace monolock::simulation {

namespace {

using history::kind;

// Access rules are an administrator's word: who is refused by them has not done wrong.
history::reason reason_of(const detail::claim_loss& why) {
    switch (why.kind) {
        case detail::loss_kind::acquire_timeout:
        case detail::loss_kind::heartbeat_timeout:
            return history::reason::silence;
        case detail::loss_kind::connection_closed:
            return history::reason::closed;
        case detail::loss_kind::protocol_violation:
            return history::reason::violation;
        case detail::loss_kind::server_error:
            break;
    }
    const bool by_rules = why.code == protocol::error_code::not_authorized;
    return by_rules || protocol::is_temporary(why.code) ? history::reason::administrator
                                                        : history::reason::refused;
}

std::string text_of(const history::event& what) {
    std::ostringstream text;
    text << to_string(what.what) << " of connection " << what.claim.worker << " at "
         << what.at.count() << " ns";
    return text.str();
}

}  // namespace

client_history::stage& client_history::of(std::uint32_t connection) {
    if (stages_.size() <= connection) {
        stages_.resize(connection + 1, stage::unheard_of);
        stopped_at_.resize(connection + 1);
    }
    return stages_[connection];
}

void client_history::note(std::uint32_t connection, history::event what, sim_time now) {
    what.at = now;
    what.claim = {connection, 0};
    events_.push_back(what);
}

void client_history::asks(std::uint32_t connection, int lock, milliseconds lease, sim_time now) {
    of(connection) = stage::asking;
    note(connection, {.what = kind::ask, .lock = static_cast<std::uint32_t>(lock), .lease = lease},
         now);
}

void client_history::waits(std::uint32_t connection, sim_time now) {
    if (of(connection) == stage::asking) {
        of(connection) = stage::waiting;
        note(connection, {.what = kind::waiting}, now);
    }
}

void client_history::granted(std::uint32_t connection, std::uint64_t token, sim_time until,
                             sim_time now) {
    of(connection) = stage::owning;
    note(connection, {.what = kind::grant, .token = token, .until = until}, now);
}

void client_history::confirmed(std::uint32_t connection, sim_time until, sim_time now) {
    if (of(connection) == stage::owning) {
        note(connection, {.what = kind::confirmed, .until = until}, now);
    }
}

void client_history::acts(std::uint32_t connection, sim_time now) {
    note(connection, {.what = kind::act}, now);
}

// Who has not asked has nothing to end.
void client_history::stops(std::uint32_t connection, history::event what, sim_time now) {
    stage& its = of(connection);
    if (its != stage::unheard_of && its != stage::stopped) {
        note(connection, what, now);
        stopped_at_[connection] = now;
    }
    its = stage::stopped;
}

void client_history::ends(std::uint32_t connection, sim_time now) {
    stops(connection, {.what = kind::end}, now);
}

void client_history::loses(std::uint32_t connection, const detail::claim_loss& why, sim_time now) {
    stops(connection, {.what = kind::loss, .why = reason_of(why)}, now);
}

void client_history::vanishes(std::uint32_t connection, sim_time now) {
    note(connection, {.what = kind::silent}, now);
    ends(connection, now);
    of(connection) = stage::vanished;
}

void client_history::stops_for(std::uint32_t connection, sim_time now, sim_time until) {
    note(connection, {.what = kind::paused}, now);
    note(connection, {.what = kind::resumed}, until);
}

// A shard that stands still in the turn in which it ends an owner tells of it when it goes on; its
// client may have let go by itself meanwhile.
void client_history::announced(std::uint32_t connection, sim_time at) {
    const stage now = of(connection);
    const bool had_stopped = now == stage::stopped && stopped_at_[connection] <= at;
    if (now != stage::unheard_of && !had_stopped) {
        note(connection, {.what = kind::resetting}, at);
        note(connection, {.what = kind::reset_over}, at);
    }
}

void client_history::server_starts(sim_time now) {
    clock_noted_ = false;
    events_.push_back({.at = now, .what = kind::server_started});
}

void client_history::server_ends(sim_time now) {
    events_.push_back({.at = now, .what = kind::server_down});
}

void client_history::clock_went_back(sim_time now) {
    if (!clock_noted_) {
        clock_noted_ = true;
        events_.push_back({.at = now, .what = kind::server_started, .wall_clock_right = false});
    }
}

std::string client_history::verdict() const {
    auto sorted = events_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& left, const auto& right) { return left.at < right.at; });
    const history::report made = history::check(sorted, {.clocks_drift = true});
    if (made.violations().empty()) {
        return {};
    }
    const history::violation& first = made.violations().front();
    return std::string{to_string(first.broken)} + ": " + first.how + ": " + text_of(first.first) +
           ", " + text_of(first.second);
}

}  // namespace monolock::simulation
