#pragma once

#include <cstdint>

#include "protocol/fencing_token.hpp"

namespace monolock::core {

using protocol::fencing_token;

// max(previous + 1, unix_ms << 10): about the time of the grant, and never back when the wall clock
// goes back. Below 2^53 until the year 2248 (docs/protocol.md, "Fencing tokens").
[[nodiscard]] fencing_token next_token(fencing_token previous, std::uint64_t unix_ms) noexcept;

// Where the tokens of grants come from. One source serves all shards of a process.
class token_source {
public:
    virtual ~token_source() = default;

    // Larger than every token this source gave before, on whichever thread. Never zero, never
    // blocks.
    [[nodiscard]] virtual fencing_token next() noexcept = 0;
};

}  // namespace monolock::core
