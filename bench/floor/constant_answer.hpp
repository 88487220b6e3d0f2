#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "floor/loop.hpp"
#include "protocol/frames.hpp"

namespace monolock::bench::floor {

// ACQUIRED frames, always of the same token.
class constant_answer {
public:
    constant_answer() {
        const auto frame = protocol::encode_acquired(protocol::fencing_token{1});
        for (std::size_t i = 0; i < frames_.size(); ++i) {
            frames_[i] = frame[i % frame.size()];
        }
    }

    // To what one receive brought, at least 1 byte and at most input_bytes_max: one frame to an
    // ACQUIRE, however long, and one to each byte of anything else. Valid as long as this object.
    [[nodiscard]] std::span<const std::byte> to(std::span<const std::byte> input) const noexcept {
        const bool acquire =
            input.front() == static_cast<std::byte>(protocol::client_message::acquire);
        const auto frames = acquire ? 1 : input.size();
        return std::span{frames_}.first(frames * protocol::acquired_bytes);
    }

private:
    std::array<std::byte, input_bytes_max * protocol::acquired_bytes> frames_{};
};

}  // namespace monolock::bench::floor
