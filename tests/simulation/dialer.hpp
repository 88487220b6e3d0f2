#pragma once

#include <functional>

#include "simulation/network.hpp"

namespace monolock::simulation {

// How a client gets a connection.
class dialer {
public:
    virtual ~dialer() = default;
    // Calls `done` once, later: with a connection, or with null if it was refused or timed out.
    // `identity` is what its certificate says.
    virtual void dial(int identity, std::function<void(connection*)> done) = 0;
};

}  // namespace monolock::simulation
