// All that a server, or whatever answers on its port, may send to a client: whole and in pieces it
// must mean the same frames, and each frame must encode back to the bytes it came from.

#include <algorithm>
#include <optional>
#include <vector>

#include "fuzz/pieces.hpp"
#include "protocol/frames.hpp"

namespace {

namespace protocol = monolock::protocol;
using monolock::fuzz::bytes;
using monolock::fuzz::require;

struct transcript {
    std::vector<protocol::server_frame> frames;
    std::optional<std::uint8_t> unknown_type;

    friend bool operator==(const transcript&, const transcript&) = default;
};

transcript read(const std::vector<bytes>& pieces) {
    transcript seen;
    protocol::server_frame_decoder decoder;
    for (bytes piece : pieces) {
        while (!piece.empty()) {
            std::size_t used = 0;
            const auto status = decoder.feed(piece, used);
            require(used > 0 && used <= piece.size());
            piece = piece.subspan(used);
            if (status == protocol::server_frame_decoder::status::malformed) {
                seen.unknown_type = decoder.unknown_type();
                return seen;
            }
            if (status == protocol::server_frame_decoder::status::frame) {
                seen.frames.push_back(decoder.take_frame());
            } else {
                require(piece.empty());
            }
        }
    }
    return seen;
}

void append(std::vector<std::byte>& out, bytes frame) {
    out.insert(out.end(), frame.begin(), frame.end());
}

std::vector<std::byte> encode(const std::vector<protocol::server_frame>& frames) {
    std::vector<std::byte> out;
    for (const auto& frame : frames) {
        if (const auto* grant = std::get_if<protocol::acquired>(&frame)) {
            append(out, protocol::encode_acquired(grant->token));
        } else if (const auto* refusal = std::get_if<protocol::error>(&frame)) {
            append(out, protocol::encode_error(refusal->code, refusal->reason).bytes());
        } else {
            append(out, protocol::waiting_frame);
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = monolock::fuzz::cut(data, size);
    const transcript seen = read({input.whole});
    require(seen == read(input.pieces));
    const auto encoded = encode(seen.frames);
    require(encoded.size() <= input.whole.size());
    require(std::ranges::equal(encoded, input.whole.first(encoded.size())));
    return 0;
}
