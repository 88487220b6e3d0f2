#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "simulation/time.hpp"

namespace monolock::simulation {

// Chances are counted in parts of a million, so that no result depends on floating point.
using per_million = std::uint32_t;

// The one source of chance of a run: splitmix64. The standard library's distributions are left
// alone because their results differ from one library to the next, and a seed must not.
class random_source {
public:
    explicit random_source(std::uint64_t seed) noexcept : state_{seed} {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += 0x9E3779B97F4A7C15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
        return mixed ^ (mixed >> 31U);
    }

    // 0 to limit - 1; the limit is above zero. The bias of the remainder is of no account here.
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

    // Both ends included.
    [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    [[nodiscard]] sim_time between(sim_time low, sim_time high) noexcept {
        return sim_time{between(low.count(), high.count())};
    }

    [[nodiscard]] bool chance(per_million likely) noexcept { return below(1'000'000) < likely; }

    // Each doubling from low to high is equally likely: a millisecond is as common as a second.
    // 0 < low <= high.
    [[nodiscard]] std::int64_t spread(std::int64_t low, std::int64_t high) noexcept {
        std::uint64_t doublings = 1;
        for (std::int64_t top = low; top < high / 2; top *= 2) {
            ++doublings;
        }
        const std::int64_t from = low << below(doublings);
        return between(from, from > high / 2 ? high : 2 * from);
    }
    [[nodiscard]] sim_time spread(sim_time low, sim_time high) noexcept {
        return sim_time{spread(low.count(), high.count())};
    }

    // One of several by their weights: its place, or nothing where all weights are zero.
    [[nodiscard]] std::optional<std::size_t> weighted(
        std::span<const std::uint32_t> weights) noexcept {
        std::uint64_t sum = 0;
        for (const std::uint32_t weight : weights) {
            sum += weight;
        }
        std::uint64_t drawn = below(std::max<std::uint64_t>(sum, 1));
        for (std::size_t place = 0; place < weights.size(); ++place) {
            if (drawn < weights[place]) {
                return place;
            }
            drawn -= weights[place];
        }
        return std::nullopt;
    }

    // How far off a clock is, in thousandths: anything up to `most` either way, or one of the two.
    [[nodiscard]] std::int64_t drift(std::int64_t most, bool at_limits) noexcept {
        if (!at_limits) {
            return between(-most, most);
        }
        return chance(500'000) ? most : -most;
    }

private:
    std::uint64_t state_;
};

}  // namespace monolock::simulation
