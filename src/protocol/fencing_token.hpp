#pragma once

#include <compare>
#include <cstdint>

namespace monolock::protocol {

// The number that a grant carries, so that the guarded resource can refuse a stale owner. Larger
// for each later grant of a server process, over all locks. Zero is never a token
// (docs/protocol.md).
struct fencing_token {
    std::uint64_t value = 0;

    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;
};

}  // namespace monolock::protocol
