#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace monolock::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

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

    // Big endian, of that many bytes.
    std::uint64_t number(std::size_t bytes) {
        std::uint64_t value = 0;
        for (std::size_t index = 0; index < bytes; ++index) {
            value = value << 8U | next();
        }
        return value;
    }

    // The next bytes, as many as there are.
    std::string_view text(std::size_t bytes) {
        const auto taken = left_.first(std::min(bytes, left_.size()));
        left_ = left_.subspan(taken.size());
        return text_of(taken.data(), taken.size());
    }
    std::string_view rest() { return text(left_.size()); }

private:
    std::span<const std::uint8_t> left_;
};

// Calls with each part between separators; a text without one is one part.
template <class Each>
void for_each_part(std::string_view text, char separator, Each each) {
    for (;;) {
        const std::size_t end = text.find(separator);
        each(text.substr(0, end));
        if (end == std::string_view::npos) {
            return;
        }
        text.remove_prefix(end + 1);
    }
}

}  // namespace monolock::fuzz
