#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "in_memory/network.hpp"

namespace monolock::bench::in_memory {

// Long enough that no session needs a heartbeat to survive a run.
inline constexpr std::chrono::milliseconds long_lease{std::chrono::hours{12}};

// A name as people choose them: a path and a number, 20 bytes.
[[nodiscard]] std::string lock_name(std::size_t serial);

// All clients of a network, by the number of their connection. What a call asks for is on its way
// when the network is told to announce it.
class clients {
public:
    enum class answer { none, waiting, acquired, other };

    explicit clients(network& over) noexcept : network_{&over} {}

    // In an order that has nothing to do with that of their claims, and so with where the server
    // keeps them: side by side they would be cheaper to find than in life. 0 comes last.
    [[nodiscard]] static std::vector<std::uint32_t> shuffled(std::size_t count);

    void claim(std::size_t who, const std::string& name, std::chrono::milliseconds lease);
    void beat(std::size_t who);
    // The next frame that has arrived.
    [[nodiscard]] answer take(std::size_t who);
    // Throws std::runtime_error if it is not this one.
    void take(std::size_t who, answer expected);
    void leave(std::size_t who) { network_->hang_up(who); }

    // Claims by all from `begin` to `end`, in batches; what each is answered is checked. A name of
    // its own for each, by its number; or this one.
    void claim_all(std::size_t begin, std::size_t end, std::chrono::milliseconds lease,
                   const std::optional<std::string>& name = {});
    // One heartbeat of each, in batches, and their answers, which must be ACQUIRED.
    void beat_all(const std::vector<std::uint32_t>& who);
    // All close, in batches, and the server does too. Nobody may be promoted by it.
    void leave_all(const std::vector<std::uint32_t>& who);

private:
    network* network_;
};

}  // namespace monolock::bench::in_memory
