#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/assert.hpp"

namespace monolock::server {

// The longest lease of all owners of one shard, without looking at any of them: leases are counted
// by their order of magnitude, and of each magnitude the longest is remembered until nobody has one
// any more. So what it says may be too long by less than a factor of two, never too short. For the
// shard's thread.
class owner_leases {
public:
    void add(std::chrono::milliseconds lease) noexcept {
        magnitude& of = magnitudes_[index(lease)];
        of.longest = of.owners++ == 0 ? lease : std::max(of.longest, lease);
        peak_ = std::max(peak_, lease);
    }
    void remove(std::chrono::milliseconds lease) noexcept {
        magnitude& of = magnitudes_[index(lease)];
        MONOLOCK_ASSERT(of.owners > 0);
        --of.owners;
    }

    // The longest of now and of all that was since this was last asked. Zero: there was no owner.
    [[nodiscard]] std::chrono::milliseconds take_peak() noexcept {
        const std::chrono::milliseconds now = longest();
        return std::max(now, std::exchange(peak_, now));
    }

private:
    struct magnitude {
        std::uint64_t owners = 0;
        std::chrono::milliseconds longest{0};
    };

    static std::size_t index(std::chrono::milliseconds lease) noexcept {
        return static_cast<std::size_t>(
            std::bit_width(static_cast<std::uint32_t>(std::max<std::int64_t>(0, lease.count()))));
    }

    [[nodiscard]] std::chrono::milliseconds longest() const noexcept {
        const auto most = std::find_if(magnitudes_.rbegin(), magnitudes_.rend(),
                                       [](const magnitude& one) { return one.owners > 0; });
        return most == magnitudes_.rend() ? std::chrono::milliseconds{0} : most->longest;
    }

    std::array<magnitude, 33> magnitudes_{};
    std::chrono::milliseconds peak_{0};
};

}  // namespace monolock::server
