#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/claim.hpp"
#include "history/event.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation {

// What the honest clients of a run have seen and done, told as the processes of tests/faults tell
// it, and held to the same invariants at the end (history/check.hpp). The rules judge each step by
// what both sides know; this judges the whole by what clients know. Each connection is a worker
// with one claim.
//
// Not asked: what is late or is only of a calm time, and lost_for_cause, for which not all that
// happens to a connection is noted (ended_for_cause and lost_without_cause judge that). As clocks
// drift, a client may believe for longer than 0.8 x lease by another's clock, and a lease is worth
// nothing beyond that: of acts_within_belief the length of a belief is left to deadline_kept, and
// of no_early_grant the last fifth of a lease to early_expiry.
class client_history {
public:
    // ---- the client's. The server has its connection, and may tell it of an end from then on,
    // before it asks and even before it knows.
    void connects(std::uint32_t connection, sim_time now);
    void asks(std::uint32_t connection, int lock, milliseconds lease, sim_time now);
    // More than once is once.
    void waits(std::uint32_t connection, sim_time now);
    void granted(std::uint32_t connection, std::uint64_t token, sim_time until, sim_time now);
    void confirmed(std::uint32_t connection, sim_time until, sim_time now);
    void acts(std::uint32_t connection, sim_time now);
    // If it has not stopped before.
    void ends(std::uint32_t connection, sim_time now);
    void loses(std::uint32_t connection, const detail::claim_loss& why, sim_time now);
    // Nothing of it arrives any more, and it has no more to say.
    void vanishes(std::uint32_t connection, sim_time now);
    void stops_for(std::uint32_t connection, sim_time now, sim_time until);

    // ---- the world's
    // The server was told that the session is over, or ended it, at that time, which may be past.
    // Counts only if its client had not closed before.
    void announced(std::uint32_t connection, sim_time at);
    void server_starts(sim_time now);
    void server_ends(sim_time now);
    // A token was taken with a clock that shows less than at some grant of an earlier process.
    void clock_went_back(sim_time now);
    // Why a client may be told of an operator, or of the server's end. These excuse nothing else:
    // whose end is announced is known for each.
    void operator_ends(int lock, sim_time now);
    void operator_has_ended(int lock, sim_time now);
    // By a shutdown, or for want of a mandate; and no more, or else by a new process.
    void sends_away(sim_time now);
    void serves_again(sim_time now);

    // Losses for which there must be such a cause.
    [[nodiscard]] std::uint64_t losses_with_cause() const noexcept { return losses_with_cause_; }
    // The first broken invariant with its two events, or nothing.
    [[nodiscard]] std::string verdict() const;

private:
    enum class stage : std::uint8_t { unheard_of, asking, waiting, owning, stopped, vanished };

    struct claim {
        stage at = stage::unheard_of;
        std::uint32_t lock = 0;
        std::optional<sim_time> connected_at;
        sim_time stopped_at{0};
    };

    claim& of(std::uint32_t connection);
    void note(std::uint32_t connection, history::event what, sim_time now);
    void stops(std::uint32_t connection, history::event what, sim_time now);
    void note_loss_with_cause(std::uint32_t connection, history::event loss, sim_time now);

    std::vector<claim> claims_;  // by connection
    std::vector<history::event> events_;
    std::vector<history::event> causes_;  // and the claims that were told of one
    std::uint64_t losses_with_cause_ = 0;
    bool clock_noted_ = false;  // of this process
};

}  // namespace monolock::simulation
