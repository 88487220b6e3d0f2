#include "coordination/sightings.hpp"

#include <algorithm>
#include <iterator>

namespace monolock::coordination {

namespace {

using std::chrono::milliseconds;

// Longer ones are nonsense that somebody wrote there, and must not break the arithmetic.
constexpr milliseconds ttl_max = std::chrono::hours{24 * 365};

}  // namespace

void sightings::saw(const active_entry& what, time_point now) {
    const renewal fresh{.of = what.created, .sequence = what.value.sequence, .at = now};
    const auto place = std::ranges::find_if(
        seen_, [&fresh](const auto& each) { return !each || each->of <= fresh.of; });
    if (place == seen_.end()) {
        return;
    }
    if (*place && (*place)->of == fresh.of) {
        // The answer to a look may come behind what the watch has told since.
        if ((*place)->sequence < fresh.sequence) {
            *place = fresh;
        }
        return;
    }
    std::move_backward(place, std::prev(seen_.end()), seen_.end());
    *place = fresh;
}

void sightings::sent(term mine, std::uint64_t sequence, time_point at) {
    own_ = renewal{.of = mine, .sequence = sequence, .at = at};
}

time_point sightings::opens_at(const std::optional<state_record>& state, term mine,
                               time_point won_at, milliseconds own_ttl) const {
    if (!state) {
        return won_at + own_ttl;
    }
    const milliseconds ttl = std::clamp(state->ttl, milliseconds{0}, ttl_max);
    const bool from_before = state->written_in < mine;
    if (from_before && state->resigned) {
        return won_at;
    }
    if (from_before && ttl > milliseconds{0}) {
        // Of its own, the last that was sent is no earlier than the one that came through.
        if (own_ && own_->of == state->written_in && state->sequence <= own_->sequence) {
            return own_->at + ttl;
        }
        for (const auto& each : seen_) {
            if (each && each->of == state->written_in && each->sequence == state->sequence) {
                return each->at + ttl;
            }
        }
    }
    return won_at + std::max(own_ttl, ttl);
}

}  // namespace monolock::coordination
