#include "core/token_source.hpp"

#include <algorithm>

namespace monolock::core {

fencing_token next_token(fencing_token previous, std::uint64_t unix_ms) noexcept {
    return {std::max(previous.value + 1, unix_ms << 10U)};
}

}  // namespace monolock::core
