#include "server/tls_handshake.hpp"

#include <array>
#include <utility>

namespace monolock::server {

namespace {

// A fatal protocol_version as it stands on the wire (RFC 8446, section 6): what a peer hears that
// speaks no TLS. OpenSSL hangs up without a word, and a client of ours would come again for ever.
constexpr std::array no_tls_alert{std::byte{0x15}, std::byte{3}, std::byte{1}, std::byte{0},
                                  std::byte{2},    std::byte{2}, std::byte{70}};

}  // namespace

void handshake_steps::add(boost::intrusive_ptr<tls_handshake> who) {
    const bool idle = waiting_.empty();
    if (who->socket_.stream() != nullptr) {
        waiting_.add_begun(std::move(who));
    } else {
        waiting_.add_new(std::move(who));
    }
    if (idle) {
        post_turn();
    }
}

// Posted anew each time: what became ready meanwhile runs before the next step.
void handshake_steps::post_turn() {
    loop_->post([this] { turn(); });
}

void handshake_steps::turn() {
    const boost::intrusive_ptr<tls_handshake> next = waiting_.take();
    waiting_.forget_oldest([](const auto& each) { return !each->socket_.is_open(); });
    if (!waiting_.empty()) {
        post_turn();
    }
    if (next->socket_.is_open()) {
        next->step();
    }
}

bool tls_handshake::has_begun() noexcept {
    std::array<std::byte, 1> first{};
    return socket_.stream() != nullptr || socket_.peek(first) > 0;
}

void tls_handshake::step() {
    if (socket_.stream() == nullptr) {
        look_at_first_bytes();
        if (socket_.has_ended()) {  // while it stood in line: nobody wants to hear the answer
            unlink();
            owner_->on_failed(std::move(socket_), peer_, {});
            return;
        }
        socket_.secure(owner_->tls_in_force());
    }
    const secure_stream& stream = *socket_.stream();
    switch (socket_.handshake()) {
        case tls::status::ok:
            unlink();
            owner_->on_secured(std::move(socket_), peer_, stream.identity());
            return;
        case tls::status::wants_read:
            socket_.await_readable(*this);
            return;
        case tls::status::wants_write:
            socket_.await_writable(*this);
            return;
        case tls::status::peer_closed:
        case tls::status::silence:
            give_up({});
            return;
        case tls::status::alerted:
            give_up("alert from the client: " + stream.failure());
            return;
        case tls::status::failed:
            unlink();
            owner_->on_failed(std::move(socket_), peer_, stream.failure());
            return;
    }
}

// OpenSSL eats them and only says that they are no TLS. The socket is not secured yet.
void tls_handshake::look_at_first_bytes() {
    std::array<std::byte, 16> first{};
    const std::size_t count = socket_.peek(first);
    if (const auto foreign = guess_foreign_to_tls(std::span{first}.first(count))) {
        owner_->on_foreign(peer_, *foreign);
        static_cast<void>(socket_.send(no_tls_alert));
    }
}

void tls_handshake::give_up(const std::string& why) {
    unlink();
    socket_.close();
    owner_->on_failed(std::move(socket_), peer_, why);
}

}  // namespace monolock::server
