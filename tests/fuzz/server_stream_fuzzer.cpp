// All that a server, or whatever answers on its port, may send to a client: whole and in pieces it
// must mean the same frames, and each frame must encode back to the bytes it came from.

#include <algorithm>
#include <optional>

#include "fuzz/pieces.hpp"
#include "protocol/frames.hpp"

namespace {

namespace protocol = monolock::protocol;
using monolock::fuzz::bytes;
using monolock::fuzz::cut_input;
using monolock::fuzz::require;
using status = protocol::server_frame_decoder::status;

// Takes the frames off the beginning of a text, which it is read again with.
class follower {
public:
    explicit follower(bytes whole) : left_{whole} {}

    void require_is_next(const protocol::server_frame& frame) {
        std::size_t used = 0;
        require(decoder_.feed(left_, used) == status::frame);
        require(decoder_.take_frame() == frame);
        if (const auto* grant = std::get_if<protocol::acquired>(&frame)) {
            require_bytes(protocol::encode_acquired(grant->token), used);
        } else if (const auto* refusal = std::get_if<protocol::error>(&frame)) {
            require_bytes(protocol::encode_error(refusal->code, refusal->reason).bytes(), used);
        } else {
            require_bytes(protocol::waiting_frame, used);
        }
        left_ = left_.subspan(used);
    }

    // What follows is no frame, or not all of one.
    void require_ends_with(std::optional<std::uint8_t> unknown_type) {
        if (left_.empty()) {
            require(!unknown_type);
            return;
        }
        std::size_t used = 0;
        const status last = decoder_.feed(left_, used);
        require(last == (unknown_type ? status::malformed : status::need_more));
        require(!unknown_type ||
                (decoder_.unknown_type() == *unknown_type && left_[0] == std::byte{*unknown_type}));
    }

private:
    void require_bytes(bytes encoded, std::size_t used) const {
        require(std::ranges::equal(encoded, left_.first(used)));
    }

    bytes left_;
    protocol::server_frame_decoder decoder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const cut_input input{data, size};
    follower whole{input.whole()};
    protocol::server_frame_decoder decoder;
    std::optional<std::uint8_t> unknown_type;
    input.feed(true, [&](bytes piece) {
        while (!piece.empty()) {
            std::size_t used = 0;
            const status did = decoder.feed(piece, used);
            require(used > 0 && used <= piece.size());
            piece = piece.subspan(used);
            if (did == status::malformed) {
                unknown_type = decoder.unknown_type();
                return false;
            }
            if (did == status::frame) {
                whole.require_is_next(decoder.take_frame());
            } else {
                require(piece.empty());
            }
        }
        return true;
    });
    whole.require_ends_with(unknown_type);
    return 0;
}
