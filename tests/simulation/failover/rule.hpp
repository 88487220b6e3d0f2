#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulation/rule_table.hpp"

namespace monolock::simulation::failover {

// The invariants, by the names that a failure prints and the planted bugs are known by.
enum class rule : std::uint8_t {
    one_active,
    within_mandate,
    opened_after_renewal,
    tokens_rise,
    below_ceiling,
    lease_recorded,
    lease_kept_recorded,
    one_believer,
    grants_in_time,
    chain_alone,
    lease_used_once,
    campaigns_without_sessions,
    resigns_when_done,
    leaves_for_good,
    judged_first,
    no_busy_loop,
    somebody_active,
    everyone_served,
};

struct invariant {
    rule is;
    std::string_view name;
    std::string_view promise;
};

// What each of them says; `simulate_failover --rules` prints this.
inline constexpr std::array invariants{
    invariant{rule::one_active, "one_active",
              "no server answers a client once another has opened in a later term"},
    invariant{rule::within_mandate, "within_mandate",
              "no answer at or past the send time of the last answered transaction + 0.8 TTL"},
    invariant{rule::opened_after_renewal, "opened_after_renewal",
              "a server opens only after a renewal of its own term was answered"},
    invariant{rule::tokens_rise, "tokens_rise", "tokens rise over all servers, whatever clocks do"},
    invariant{rule::below_ceiling, "below_ceiling",
              "each token is below the ceiling that the store has at that moment"},
    invariant{
        rule::lease_recorded, "lease_recorded",
        "who is granted has no longer a lease than the store has recorded, as far as covered"},
    invariant{
        rule::lease_kept_recorded, "lease_kept_recorded",
        "the record is never lowered below the lease of somebody who believes, if it is covered"},
    invariant{
        rule::one_believer, "one_believer",
        "nobody is granted what another believes to own: of the same term, unless an operator "
        "ended it; of another, if the grant delay is automatic and covers its lease"},
    invariant{rule::grants_in_time, "grants_in_time",
              "nothing is granted before the grant delay is over"},
    invariant{rule::chain_alone, "chain_alone",
              "a server has one transaction of the chain under way at most"},
    invariant{rule::lease_used_once, "lease_used_once",
              "a lease is campaigned with once, revoked once, and not used after either is over"},
    invariant{rule::campaigns_without_sessions, "campaigns_without_sessions",
              "a server campaigns only when it has no session left"},
    invariant{rule::resigns_when_done, "resigns_when_done",
              "a server resigns only a term in which it opened, and when it has no session left"},
    invariant{rule::leaves_for_good, "leaves_for_good",
              "a server that was told to leave campaigns no more"},
    invariant{rule::judged_first, "judged_first",
              "no call leaves a server active at or past its deadline"},
    invariant{rule::no_busy_loop, "no_busy_loop",
              "a server makes at most 80 requests in each TTL, whatever fails"},
    invariant{rule::somebody_active, "somebody_active",
              "once faults have stopped and every lease has had its time, some server is active "
              "within 4 TTL, and stays it"},
    invariant{rule::everyone_served, "everyone_served",
              "once faults have stopped, each client is granted its lock within a bound"},
};

[[nodiscard]] constexpr std::string_view name_of(rule one) noexcept {
    return invariants.at(static_cast<std::size_t>(one)).name;
}

static_assert(each_rule_has_its_line(invariants, rule::everyone_served),
              "in the order of their names above");

}  // namespace monolock::simulation::failover
