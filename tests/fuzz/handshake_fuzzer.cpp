// The first bytes of a connection, through a real socket and the set that watches it, as the server
// reads them: whatever a peer sends, in whatever pieces, becomes the claim or the refusal that the
// protocol names, with every byte behind it kept for the session; or nothing, and no byte is said.

#include <sys/socket.h>

#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"
#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "server/handshake.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace posix = monolock::posix;
namespace protocol = monolock::protocol;
namespace server = monolock::server;
using fuzz::bytes;
using fuzz::require;

std::vector<std::byte> copy_of(bytes what) {
    return {what.begin(), what.end()};
}

// What came of a connection.
struct outcome {
    std::optional<protocol::acquire_request> claim;
    std::optional<protocol::malformed> refusal;
    std::vector<std::byte> rest;  // behind the ACQUIRE, of the piece that it ended in
    bool settled = false;
};

class owner final : public server::handshake_owner {
public:
    explicit owner(outcome& into) : into_{&into} {}

    void on_claim(server::connection_socket&& socket, server::claim_arrival&& claim) override {
        settle();
        require(socket.is_open());
        into_->claim = std::move(claim.request);
        into_->rest = std::move(claim.rest);
        keep(std::move(socket));
    }
    void on_refused(server::connection_socket&& socket, const server::peer_address& /*peer*/,
                    const protocol::malformed& refusal, bytes seen) override {
        settle();
        require(!seen.empty());
        into_->refusal = refusal;
        keep(std::move(socket));
    }
    void on_linger(server::connection_socket&& /*socket*/) override { require(false); }

private:
    void settle() { require(!std::exchange(into_->settled, true)); }
    static void keep(server::connection_socket&& socket) {
        const server::loose_connection loose = socket.release();
        require(static_cast<bool>(loose.descriptor));
    }

    outcome* into_;
};

outcome expected_of(const fuzz::cut_input& input) {
    outcome made;
    protocol::acquire_decoder decoder;
    input.feed(true, [&](bytes piece) {
        std::size_t used = 0;
        switch (decoder.feed(piece, used)) {
            case protocol::acquire_decoder::status::need_more:
                return true;
            case protocol::acquire_decoder::status::complete:
                made.claim = decoder.take_request();
                made.rest = copy_of(piece.subspan(used));
                break;
            case protocol::acquire_decoder::status::malformed:
                made.refusal = decoder.error();
                break;
        }
        made.settled = true;
        return false;
    });
    return made;
}

void require_same(const outcome& found, const outcome& expected) {
    require(found.settled == expected.settled);
    require(found.claim.has_value() == expected.claim.has_value());
    require(found.refusal.has_value() == expected.refusal.has_value());
    require(found.rest == expected.rest);
    require(!found.claim || (found.claim->lease_ms == expected.claim->lease_ms &&
                             found.claim->name == expected.claim->name));
    require(!found.refusal || (found.refusal->code == expected.refusal->code &&
                               found.refusal->reason == expected.refusal->reason));
}

// The client's end. What the server says there is nothing: words are for those who take over.
bool is_closed(const posix::descriptor& client) {
    std::array<std::byte, 1> byte{};
    const ssize_t count = ::recv(client.get(), byte.data(), byte.size(), MSG_DONTWAIT);
    require(count <= 0);
    return count == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::cut_input input{data, size};
    const outcome expected = expected_of(input);

    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    posix::descriptor client{ends[0]};
    static server::readiness_set set;
    const auto turn = [] {
        do {
            set.turn(false);
        } while (set.is_due());
    };

    outcome found;
    owner with{found};
    boost::intrusive::list<server::deadline_entry, boost::intrusive::constant_time_size<false>> all;
    {
        server::connection_socket socket{set,
                                         {.descriptor = posix::descriptor{ends[1]}, .slot = {}}};
        require(socket.is_open());
        const boost::intrusive_ptr<server::handshake> one{
            new server::handshake{std::move(socket), {}, {}, with}};
        all.push_back(*one);
        one->start();
    }
    input.feed(true, [&](bytes piece) {
        require(::send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(piece.size()));
        turn();
        return !found.settled;
    });
    require_same(found, expected);
    if (found.settled) {
        require(all.empty() && is_closed(client));  // this owner closes at once
        return 0;
    }
    require(all.size() == 1 && !is_closed(client));
    if (size > 0 && data[0] % 2 == 0) {
        require(::shutdown(client.get(), SHUT_WR) == 0);
    } else {
        static_cast<server::handshake&>(all.front()).close();  // its time is over
    }
    turn();
    require(all.empty() && is_closed(client));
    return 0;
}
