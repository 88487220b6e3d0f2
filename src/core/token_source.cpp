#include "core/token_source.hpp"

#include <algorithm>

namespace monolock::core {

fencing_token next_token(fencing_token previous, std::uint64_t unix_ms) noexcept {
    return {std::max(previous.value + 1, unix_ms << 10U)};
}

std::optional<fencing_token> next_token(fencing_token previous, std::uint64_t unix_ms,
                                        std::uint64_t ceiling) noexcept {
    if (previous.value >= ceiling || previous.value + 1 >= ceiling) {
        return std::nullopt;
    }
    return fencing_token{std::max(previous.value + 1, std::min(unix_ms << 10U, ceiling - 1))};
}

}  // namespace monolock::core
