// All that a client may send: the first message, then messages of a session. The same bytes whole
// and in pieces must mean the same, and what is accepted must encode back to the bytes it came
// from.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/pieces.hpp"
#include "protocol/frames.hpp"

namespace {

namespace protocol = monolock::protocol;
using monolock::fuzz::bytes;
using monolock::fuzz::require;

struct transcript {
    std::optional<protocol::acquire_request> request;
    std::size_t heartbeats = 0;
    std::optional<protocol::malformed> refused;
    std::size_t taken = 0;
};

transcript read(const std::vector<bytes>& pieces) {
    transcript seen;
    protocol::acquire_decoder decoder;
    for (bytes piece : pieces) {
        if (!seen.request) {
            std::size_t used = 0;
            const auto status = decoder.feed(piece, used);
            require(used <= piece.size());
            seen.taken += used;
            if (status == protocol::acquire_decoder::status::need_more) {
                require(used == piece.size());
                continue;
            }
            if (status == protocol::acquire_decoder::status::malformed) {
                seen.refused = decoder.error();
                return seen;
            }
            seen.request = decoder.take_request();
            piece = piece.subspan(used);
        }
        for (const std::byte type : piece) {
            ++seen.taken;
            seen.refused = protocol::check_session_message(type);
            if (seen.refused) {
                return seen;
            }
            ++seen.heartbeats;
        }
    }
    return seen;
}

void require_same(const transcript& one, const transcript& other) {
    require(one.taken == other.taken && one.heartbeats == other.heartbeats);
    require(one.request.has_value() == other.request.has_value());
    require(one.refused.has_value() == other.refused.has_value());
    if (one.request) {
        require(one.request->name == other.request->name);
        require(one.request->lease_ms == other.request->lease_ms);
    }
    if (one.refused) {
        require(one.refused->code == other.refused->code);
        require(one.refused->reason == other.refused->reason);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = monolock::fuzz::cut(data, size);
    const transcript seen = read({input.whole});
    require_same(seen, read(input.pieces));
    if (seen.request) {
        require(seen.request->lease_ms > 0);
        require(!protocol::check_lock_name(seen.request->name));
        const auto frame = protocol::encode_acquire(seen.request->lease_ms, seen.request->name);
        require(std::ranges::equal(frame.bytes(), input.whole.first(frame.bytes().size())));
    }
    if (seen.refused) {
        require(!protocol::is_temporary(seen.refused->code));
        require(seen.refused->reason.starts_with(protocol::canonical_reason(seen.refused->code)));
    }
    return 0;
}
