#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "simulation/random.hpp"

namespace monolock::faults {

using instant = std::chrono::nanoseconds;
using packet = std::vector<std::byte>;

// What a bad network does to packets that go one way. All zero: a perfect one.
struct impairments {
    instant delay{0};
    instant jitter{0};  // on top of the delay, uniform; by itself it reorders nothing
    simulation::per_million lost = 0;
    simulation::per_million doubled = 0;    // the second copy is delayed for itself
    simulation::per_million overtaken = 0;  // held back for `held_back`, so that others overtake it
    instant held_back{0};
    bool cut = false;  // nothing comes through, what is under way included
    friend bool operator==(const impairments&, const impairments&) = default;
};

// One direction of a network. Pure: packets, times and a seed go in; which packet leaves when comes
// out, the same for the same seed. Times must not go back.
class impairment {
public:
    // Packets under way; one more is dropped, as a router does whose queue is full.
    static constexpr std::size_t packets_max = 10'000;

    struct counters {
        std::uint64_t offered = 0;
        std::uint64_t left = 0;  // the network, at the other end
        std::uint64_t lost = 0;
        std::uint64_t doubled = 0;
        std::uint64_t overtaken = 0;
        std::uint64_t cut = 0;
        std::uint64_t overflowed = 0;
        friend bool operator==(const counters&, const counters&) = default;
    };

    explicit impairment(std::uint64_t seed) : random_{seed} {}

    // From now on. What is under way keeps the time that it was given.
    void become(const impairments& how);
    [[nodiscard]] const impairments& now_is() const noexcept { return how_; }

    void offer(packet what, instant now);
    // When the next packet leaves.
    [[nodiscard]] std::optional<instant> next_departure() const;
    // A packet that is due, the earliest first.
    [[nodiscard]] std::optional<packet> depart(instant now);

    [[nodiscard]] const counters& counts() const noexcept { return counts_; }

private:
    struct on_its_way {
        instant leaves;
        std::uint64_t number;  // of two for the same time the first offered leaves first
        packet what;
    };
    struct later {
        bool operator()(const on_its_way& left, const on_its_way& right) const noexcept {
            return left.leaves != right.leaves ? left.leaves > right.leaves
                                               : left.number > right.number;
        }
    };

    // Drawn for each copy of a packet.
    struct fate {
        instant jitter;
        bool overtaken;
    };

    [[nodiscard]] fate draw();
    void send(packet what, const fate& its, instant now);

    simulation::random_source random_;
    impairments how_;
    std::priority_queue<on_its_way, std::vector<on_its_way>, later> under_way_;
    instant last_in_order_{0};
    std::uint64_t number_ = 0;
    counters counts_;
};

}  // namespace monolock::faults
