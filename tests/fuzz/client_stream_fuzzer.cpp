// All that a client may send: the first message, then messages of a session. The same bytes whole
// and in pieces must mean the same, and what is accepted must encode back to the bytes it came
// from. And what the first bytes are taken for when they are another protocol's.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/pieces.hpp"
#include "protocol/frames.hpp"
#include "server/foreign_protocol.hpp"

namespace {

namespace protocol = monolock::protocol;
namespace server = monolock::server;
using monolock::fuzz::bytes;
using monolock::fuzz::cut_input;
using monolock::fuzz::require;

struct transcript {
    std::optional<protocol::acquire_request> request;
    std::size_t heartbeats = 0;
    std::optional<protocol::malformed> refused;
    std::size_t taken = 0;
};

transcript read(const cut_input& input, bool in_pieces) {
    transcript seen;
    protocol::acquire_decoder decoder;
    input.feed(in_pieces, [&](bytes piece) {
        if (!seen.request) {
            std::size_t used = 0;
            const auto status = decoder.feed(piece, used);
            require(used <= piece.size());
            seen.taken += used;
            if (status == protocol::acquire_decoder::status::need_more) {
                require(used == piece.size());
                return true;
            }
            if (status == protocol::acquire_decoder::status::malformed) {
                seen.refused = decoder.error();
                return false;
            }
            seen.request = decoder.take_request();
            piece = piece.subspan(used);
        }
        for (const std::byte type : piece) {
            ++seen.taken;
            seen.refused = protocol::check_session_message(type);
            if (seen.refused) {
                return false;
            }
            ++seen.heartbeats;
        }
        return true;
    });
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

// The refusal of a first message by the order of checks in docs/protocol.md, on the whole of it.
std::optional<protocol::error_code> refusal_of(bytes text) {
    using enum protocol::error_code;
    const auto at = [&](std::size_t index) { return std::to_integer<unsigned>(text[index]); };
    if (!text.empty() && at(0) != 1) {
        return at(0) == 2 ? first_message_not_acquire : unknown_message_type;
    }
    if (text.size() > 1 && at(1) != 1) {
        return unsupported_version;
    }
    if (text.size() > 5 && (at(2) | at(3) | at(4) | at(5)) == 0) {
        return lease_not_positive;
    }
    if (text.size() < 8) {
        return std::nullopt;
    }
    const std::size_t size = at(6) * 256U + at(7);
    if (size == 0 || size > 255) {
        return size == 0 ? empty_lock_name : lock_name_too_long;
    }
    return std::nullopt;
}

// By whole words of the protocols, without a table.
std::optional<server::foreign_protocol> guess(std::string_view text) {
    using enum server::foreign_protocol;
    constexpr std::array<std::string_view, 6> methods{"GET",  "PUT",    "HEAD",
                                                      "POST", "DELETE", "OPTIONS"};
    const std::string_view word = text.substr(0, text.find(' '));
    const bool ended = word.size() < text.size();
    if ((ended && std::ranges::find(methods, word) != methods.end()) ||
        text.substr(0, 12) == "PRI * HTTP/2") {
        return http;
    }
    if (text.size() >= 2 && text[0] == 22 && text[1] == 3) {
        return tls;
    }
    const bool is_proxy = (ended && word == "PROXY") || text.substr(0, 4) == "\r\n\r\n";
    return is_proxy ? std::optional{proxy_header} : std::nullopt;
}

void check_guesses(const cut_input& input) {
    const std::string_view text = input.text();
    const auto expected = guess(text);
    require(server::guess_foreign_to_plain(input.whole()) == expected);
    const bool plain = text.starts_with("\x01\x01");
    require(server::guess_foreign_to_tls(input.whole()) ==
            (plain ? std::optional{server::foreign_protocol::plain_claim}
             : expected == server::foreign_protocol::tls ? std::nullopt
                                                         : expected));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const cut_input input{data, size};
    const transcript seen = read(input, false);
    require_same(seen, read(input, true));
    check_guesses(input);
    const auto expected = refusal_of(input.whole());
    if (seen.request) {
        require(!expected && !server::guess_foreign_to_plain(input.whole()));
        require(seen.request->lease_ms > 0);
        require(!protocol::check_lock_name(seen.request->name));
        const auto frame = protocol::encode_acquire(seen.request->lease_ms, seen.request->name);
        require(std::ranges::equal(frame.bytes(), input.whole().first(frame.bytes().size())));
    } else if (seen.refused && seen.refused->code != protocol::error_code::lock_name_not_utf8) {
        require(seen.refused->code == expected);
    } else {
        require(!expected);
    }
    if (seen.refused) {
        require(!protocol::is_temporary(seen.refused->code));
        require(seen.refused->reason.starts_with(protocol::canonical_reason(seen.refused->code)));
    }
    return 0;
}
