#pragma once

#include <cstdint>
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
class client_history {
public:
    // ---- the client's
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

    // The first broken invariant with its two events, or nothing.
    [[nodiscard]] std::string verdict() const;

private:
    enum class stage : std::uint8_t { unheard_of, asking, waiting, owning, stopped, vanished };

    stage& of(std::uint32_t connection);
    void note(std::uint32_t connection, history::event what, sim_time now);
    void stops(std::uint32_t connection, history::event what, sim_time now);

    // By connection.
    std::vector<stage> stages_;
    std::vector<sim_time> stopped_at_;
    std::vector<history::event> events_;
    bool clock_noted_ = false;  // of this process
};

}  // namespace monolock::simulation
