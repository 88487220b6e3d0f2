#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "protocol/fencing_token.hpp"

namespace monolock::core {

using protocol::fencing_token;

// max(previous + 1, unix_ms << 10): about the time of the grant, and never back when the wall clock
// goes back. Below 2^53 until the year 2248 (docs/protocol.md, "Fencing tokens").
[[nodiscard]] fencing_token next_token(fencing_token previous, std::uint64_t unix_ms) noexcept;

// The same below a ceiling: max(previous + 1, min(unix_ms << 10, ceiling - 1)). Nothing if all
// below it is given.
[[nodiscard]] std::optional<fencing_token> next_token(fencing_token previous, std::uint64_t unix_ms,
                                                      std::uint64_t ceiling) noexcept;

// Where the tokens of grants come from, and with them the permission to grant. One source serves
// all shards of a process.
class token_source {
public:
    virtual ~token_source() = default;

    // For a grant to a session of that lease. Larger than every token this source gave before, on
    // whichever thread, and never zero. Nothing: nobody may be granted that now; when it has
    // changed its mind the source has lock_table::retry_grant called on every table. Never blocks.
    [[nodiscard]] virtual std::optional<fencing_token> next(
        std::chrono::milliseconds lease) noexcept = 0;
};

}  // namespace monolock::core
