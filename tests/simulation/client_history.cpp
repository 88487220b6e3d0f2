#include "simulation/client_history.hpp"

#include <algorithm>
#include <sstream>

#include "history/check.hpp"

namespace monolock::simulation {

namespace {

using history::kind;

// A history has no word for access rules: who is refused by them has done no wrong, and no operator
// ended it. Of that denied_for_cause judges.
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
    switch (why.code) {
        case protocol::error_code::server_shutting_down:
            return history::reason::shutdown;
        case protocol::error_code::not_authorized:
            return history::reason::closed;
        default:
            return protocol::is_temporary(why.code) ? history::reason::administrator
                                                    : history::reason::refused;
    }
}

std::vector<history::event> in_order(std::vector<history::event> events) {
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& left, const auto& right) { return left.at < right.at; });
    return events;
}

std::string text_of(const history::event& what) {
    std::ostringstream text;
    text << to_string(what.what) << " of connection " << what.claim.worker << " at "
         << what.at.count() << " ns";
    return text.str();
}

}  // namespace

client_history::claim& client_history::of(std::uint32_t connection) {
    if (claims_.size() <= connection) {
        claims_.resize(connection + 1);
    }
    return claims_[connection];
}

void client_history::note(std::uint32_t connection, history::event what, sim_time now) {
    what.at = now;
    what.claim = {connection, 0};
    events_.push_back(what);
}

void client_history::connects(std::uint32_t connection, sim_time now) {
    of(connection).connected_at = now;
}

void client_history::asks(std::uint32_t connection, int lock, milliseconds lease, sim_time now) {
    claim& its = of(connection);
    its.at = stage::asking;
    its.connected_at = its.connected_at.value_or(now);
    its.lock = static_cast<std::uint32_t>(lock);
    note(connection, {.what = kind::ask, .lock = static_cast<std::uint32_t>(lock), .lease = lease},
         now);
}

void client_history::waits(std::uint32_t connection, sim_time now) {
    if (of(connection).at == stage::asking) {
        of(connection).at = stage::waiting;
        note(connection, {.what = kind::waiting}, now);
    }
}

void client_history::granted(std::uint32_t connection, std::uint64_t token, sim_time until,
                             sim_time now) {
    of(connection).at = stage::owning;
    note(connection, {.what = kind::grant, .token = token, .until = until}, now);
}

void client_history::confirmed(std::uint32_t connection, sim_time until, sim_time now) {
    if (of(connection).at == stage::owning) {
        note(connection, {.what = kind::confirmed, .until = until}, now);
    }
}

void client_history::acts(std::uint32_t connection, sim_time now) {
    note(connection, {.what = kind::act}, now);
}

// Who has not asked has nothing to end.
void client_history::stops(std::uint32_t connection, history::event what, sim_time now) {
    claim& its = of(connection);
    if (its.at != stage::unheard_of && its.at != stage::stopped) {
        note(connection, what, now);
        its.stopped_at = now;
        if (what.why == history::reason::shutdown || what.why == history::reason::administrator) {
            note_loss_with_cause(connection, what, now);
        }
    }
    its.at = stage::stopped;
}

// What it was told of may have been before it asked.
void client_history::note_loss_with_cause(std::uint32_t connection, history::event loss,
                                          sim_time now) {
    const claim& its = of(connection);
    loss.at = now;
    loss.claim = {connection, 0};
    causes_.push_back({.at = its.connected_at.value_or(now),
                       .what = kind::ask,
                       .claim = loss.claim,
                       .lock = its.lock});
    causes_.push_back(loss);
    ++losses_with_cause_;
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
    of(connection).at = stage::vanished;
}

void client_history::stops_for(std::uint32_t connection, sim_time now, sim_time until) {
    note(connection, {.what = kind::paused}, now);
    note(connection, {.what = kind::resumed}, until);
}

// A shard that stands still in the turn in which it ends an owner tells of it when it goes on; its
// client may have let go by itself meanwhile.
void client_history::announced(std::uint32_t connection, sim_time at) {
    const claim& its = of(connection);
    const bool had_stopped = its.at == stage::stopped && its.stopped_at <= at;
    if (its.at != stage::unheard_of && !had_stopped) {
        note(connection, {.what = kind::resetting}, at);
        note(connection, {.what = kind::reset_over}, at);
    }
}

void client_history::server_starts(sim_time now) {
    clock_noted_ = false;
    events_.push_back({.at = now, .what = kind::server_started});
    serves_again(now);
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

void client_history::operator_ends(int lock, sim_time now) {
    causes_.push_back({.at = now, .what = kind::forcing, .lock = static_cast<std::uint32_t>(lock)});
}

void client_history::operator_has_ended(int lock, sim_time now) {
    causes_.push_back(
        {.at = now, .what = kind::forced_over, .lock = static_cast<std::uint32_t>(lock)});
}

void client_history::sends_away(sim_time now) {
    causes_.push_back({.at = now, .what = kind::server_down});
}

void client_history::serves_again(sim_time now) {
    causes_.push_back({.at = now, .what = kind::server_started});
}

std::string client_history::verdict() const {
    const auto all = in_order(events_);
    history::report made = history::check(all, {.clocks_drift = true});
    const auto with_causes = in_order(causes_);
    history::check_causes(history::stories{with_causes}, {.causes_noted = true}, made);
    if (made.violations().empty()) {
        return {};
    }
    const history::violation& first = made.violations().front();
    return std::string{to_string(first.broken)} + ": " + first.how + ": " + text_of(first.first) +
           ", " + text_of(first.second);
}

}  // namespace monolock::simulation
