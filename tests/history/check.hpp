#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "history/event.hpp"
#include "history/stories.hpp"

namespace monolock::history {

// What every history must hold to. Clients say it, so it is judged by what they can know: a pair of
// events of which it cannot be known is passed over and counted.
enum class invariant : std::uint8_t {
    possible_story,      // ask, waiting, one grant, one end, in that order
    protocol_kept,       // no client was told what the protocol does not allow, or that it is wrong
    exclusion,           // no two claims believe in one lock at once, unless the end of the first
                         // was announced: by a reset, an operator, a restart. A paused process
                         // believes until its deadline
    acts_within_belief,  // who acts has asked itself: before its deadline, and not after its end;
                         // and no deadline is further away than 0.8 x lease
    no_early_grant,      // an owner that fell silent is followed after its whole lease, not before:
                         // 0.2 x lease after the deadline of its client
    one_token,           // a token is not zero and belongs to one claim
    tokens_per_lock,     // rise from owner to owner
    tokens_over_all,     // over all locks: a grant that was seen before another was possible has
                         // the smaller token; over restarts too if the wall clock was right
    told_for_cause,      // who was told of an operator or of the server's end was ended by that
    lost_for_cause,      // a connection that broke was broken: by a reset, an operator, an end of
                         // the server, or by the server after a whole lease of silence. Silence
                         // lasts until the client's deadline; if no side of a near worker's
                         // connection was silent, it is late
    fifo_as_seen,        // who saw WAITING before another asked is granted first, or has left
    handover_bounded,    // from a close to the grant of a near waiter; else it is late
    silence_bounded,     // and from the last sign of life that the server can have had, past the
                         // lease; else it is late. That is the last one that it did have, or
                         // up to a quarter of the lease later
    everyone_served,     // in calm; who is served after the bound, was served late
    nothing_lost_in_calm,  // of what was begun in it; by silence alone it is late
};
inline constexpr std::size_t invariants = 15;

[[nodiscard]] std::string_view to_string(invariant what) noexcept;

// What nothing excuses, and what a busy machine may.
enum class severity : std::uint8_t { unsafe, late };

struct violation {
    invariant broken{};
    severity how_bad{};
    event first;
    event second;
    std::string how;
};

// Each claim, worker or pair of claims that an invariant is about is in one of the first two.
struct tally {
    std::uint64_t checked = 0;      // it could have failed
    std::uint64_t passed_over = 0;  // it could not be judged
    std::uint64_t late = 0;
    std::uint64_t violations = 0;  // what nothing excuses
};

class report {
public:
    static constexpr std::uint64_t kept_max = 10;  // of each invariant

    void checked(invariant what) { ++of_mutable(what).checked; }
    void passed_over(invariant what) { ++of_mutable(what).passed_over; }
    void violated(invariant what, const event& first, const event& second, std::string how);
    void late(invariant what, const event& first, const event& second, std::string how);

    [[nodiscard]] const tally& of(invariant what) const {
        return counts_.at(static_cast<std::size_t>(what));
    }
    // The first kept_max of each invariant.
    [[nodiscard]] const std::vector<violation>& violations() const noexcept { return kept_; }
    [[nodiscard]] std::uint64_t count(severity how_bad) const noexcept;

    std::uint64_t claims = 0;
    std::uint64_t grants = 0;
    std::uint64_t losses = 0;             // of owners
    std::optional<instant> handover_max;  // of those checked
    std::optional<instant> silence_max;   // how late at least

private:
    tally& of_mutable(invariant what) { return counts_.at(static_cast<std::size_t>(what)); }
    void keep(violation one);

    std::array<tally, invariants> counts_{};
    std::vector<violation> kept_;
};

// Every invariant. The events must be in the order of their times.
[[nodiscard]] report check(std::span<const event> events, const settings& limits);

// One checker each, as check() calls them.
void check_stories(const stories& all, report& into);  // possible_story, protocol_kept
void check_causes(const stories& all, const settings& limits,
                  report& into);                       // told_for_cause, lost_for_cause
void check_beliefs(const stories& all, report& into);  // exclusion, acts_within_belief
void check_leases(const stories& all, const settings& limits,
                  report& into);  // no_early_grant, silence_bounded, how far a belief reaches
void check_tokens(const stories& all, report& into);  // one_token, tokens_*
void check_order(const stories& all, report& into);   // fifo_as_seen
void check_handover(const stories& all, const settings& limits, report& into);
void check_liveness(const stories& all, const settings& limits,
                    report& into);  // everyone_served, nothing_lost_in_calm

// ---- shared by the checkers

// The claims of a lock that were granted and believed it, in the order in which they saw it.
[[nodiscard]] std::vector<const story*> in_order_of_grants(const std::vector<const story*>& lock);

// Whether the server may have had another owner between these two that nobody has told of: a claim
// that never saw its grant.
[[nodiscard]] bool unseen_owner_between(const stories& all, const std::vector<const story*>& lock,
                                        const story& first, const story& next);

// Not if the server was restarted in between with a wall clock that had gone back: then tokens
// promise each other nothing.
[[nodiscard]] bool tokens_comparable(const stories& all, const story& one, const story& other);

// Whether the server may have ended the earlier of two owners of a lock, by their tokens, because
// somebody else told it to. Then the second may hear of its grant while the first still believes,
// or even before the first hears of its own.
[[nodiscard]] bool earlier_owner_announced(const stories& all, const story& seen_first,
                                           const story& seen_next);

// How long a client may believe that has sent and been answered.
[[nodiscard]] constexpr instant believed_of(instant lease) noexcept {
    return lease / 5 * 4;
}

[[nodiscard]] std::string milliseconds_text(instant span);

}  // namespace monolock::history
