#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace monolock::fuzz {

using bytes = std::span<const std::byte>;

// An input of the fuzzer that is read twice, whole and in pieces. Its first byte says how the rest
// is cut, so that a finding replays exactly.
class cut_input {
public:
    cut_input(const std::uint8_t* data, std::size_t size)
        : seed_{size == 0 ? std::uint8_t{0} : data[0]},
          whole_{std::as_bytes(std::span{data, size}).subspan(std::min<std::size_t>(size, 1))} {}

    [[nodiscard]] std::uint8_t seed() const noexcept { return static_cast<std::uint8_t>(seed_); }
    [[nodiscard]] bytes whole() const noexcept { return whole_; }
    [[nodiscard]] std::string_view text() const noexcept { return text_of(whole_); }

    [[nodiscard]] static std::string_view text_of(bytes of) noexcept {
        return {reinterpret_cast<const char*>(of.data()), of.size()};
    }

    // Calls with each piece while it returns true; one piece if `in_pieces` is not set.
    template <class Take>
    void feed(bool in_pieces, Take take) const {
        if (!in_pieces) {
            static_cast<void>(whole_.empty() || take(whole_));
            return;
        }
        std::uint32_t state = seed_;
        for (bytes rest = whole_; !rest.empty();) {
            state = state * 1664525U + 1013904223U;
            const std::size_t size = std::min<std::size_t>(rest.size(), 1 + (state >> 24U) % 12);
            if (!take(rest.first(size))) {
                return;
            }
            rest = rest.subspan(size);
        }
    }

private:
    std::uint32_t seed_;
    bytes whole_;
};

// What a fuzzer found wrong must end the process in every build; an assert would not.
inline void require(bool condition) {
    if (!condition) {
        __builtin_trap();
    }
}

}  // namespace monolock::fuzz
