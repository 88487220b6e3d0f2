#pragma once

#include <cerrno>

namespace monolock::posix {

// Whether an error of a stream socket is what the peer itself said. ETIMEDOUT, EHOSTUNREACH and the
// like are this machine's opinion, and say nothing about the peer (docs/protocol.md, "Leases").
[[nodiscard]] constexpr bool is_peers_word(int error) noexcept {
    return error == ECONNRESET || error == EPIPE;
}

}  // namespace monolock::posix
