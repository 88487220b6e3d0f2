#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace monolock::fuzz {

using bytes = std::span<const std::byte>;

// An input of the fuzzer: its first byte says how the rest is cut, so that a finding replays
// exactly.
struct cut_input {
    bytes whole;
    std::vector<bytes> pieces;
};

inline cut_input cut(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return {};
    }
    std::uint32_t state = data[0];
    cut_input input{.whole = std::as_bytes(std::span{data + 1, size - 1}), .pieces = {}};
    for (bytes rest = input.whole; !rest.empty();) {
        state = state * 1664525U + 1013904223U;
        const std::size_t length = std::min<std::size_t>(rest.size(), 1 + (state >> 24U) % 12);
        input.pieces.push_back(rest.first(length));
        rest = rest.subspan(length);
    }
    return input;
}

// What a fuzzer found wrong must end the process in every build; an assert would not.
inline void require(bool condition) {
    if (!condition) {
        __builtin_trap();
    }
}

}  // namespace monolock::fuzz
