#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/name_hash.hpp"
#include "core/time.hpp"
#include "protocol/frames.hpp"
#include "server/connection_socket.hpp"
#include "server/peer_address.hpp"

namespace monolock::server {

// A claim that passed its handshake, on its way to the shard of its name.
struct claim_arrival {
    loose_connection connection;
    peer_address peer;
    std::string identity;  // of the verified client; empty without mutual TLS
    protocol::acquire_request request;
    core::name_hash hash;
    core::time_point received_at;  // read after the receive that returned the end of the ACQUIRE
    std::vector<std::byte> rest;   // what that receive returned beyond it; mostly empty
    std::uint64_t access_generation = 0;  // of the rules that permitted it
};

}  // namespace monolock::server
