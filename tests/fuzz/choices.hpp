#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace monolock::fuzz {

// The fuzzer's input as a row of choices; zero when they are used up.
class choices {
public:
    choices(const std::uint8_t* data, std::size_t size) : left_{data, size} {}

    [[nodiscard]] bool any() const noexcept { return !left_.empty(); }

    std::uint8_t next() {
        if (left_.empty()) {
            return 0;
        }
        const std::uint8_t choice = left_[0];
        left_ = left_.subspan(1);
        return choice;
    }

private:
    std::span<const std::uint8_t> left_;
};

}  // namespace monolock::fuzz
