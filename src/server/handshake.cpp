#include "server/handshake.hpp"

#include <array>
#include <chrono>

#include "core/session_engine.hpp"

namespace monolock::server {

void handshake::close() noexcept {
    unlink();
    socket_.close();
}

void handshake::refuse(protocol::error_code code) {
    unlink();
    owner_->on_refused(std::move(socket_), peer_, protocol::refusal(code), {});
}

// The socket stays watched until the claim or the end: a receive that finds nothing waits again.
void handshake::read() {
    std::array<std::byte, core::session_engine::receive_bytes_max> input;  // NOLINT: filled below
    const core::receive_result got = socket_.receive(input);
    switch (got.status) {
        case core::receive_status::bytes:
            take(std::span{input}.first(got.count));
            return;
        case core::receive_status::nothing:
            socket_.await_readable(*this);
            return;
        case core::receive_status::peer_closed:
        case core::receive_status::silence:  // nothing was admitted, so nothing goes on
            if (socket_.owes_alert()) {
                unlink();
                owner_->on_linger(std::move(socket_));
            } else {
                close();
            }
            return;
    }
}

void handshake::on_readable() {
    if (socket_.is_open()) {
        read();
    }
}

void handshake::take(std::span<const std::byte> bytes) {
    const core::time_point received_at = std::chrono::steady_clock::now();
    std::size_t used = 0;
    switch (decoder_.feed(bytes, used)) {
        case protocol::acquire_decoder::status::need_more:
            socket_.await_readable(*this);
            return;
        case protocol::acquire_decoder::status::complete: {
            unlink();
            // Not in braces at once: g++ 12 then warns of a pointer that is never uninitialised.
            claim_arrival claim;
            claim.peer = peer_;
            claim.identity = std::move(identity_);
            claim.request = decoder_.take_request();
            claim.received_at = received_at;
            const auto rest = bytes.subspan(used);
            claim.rest.assign(rest.begin(), rest.end());
            owner_->on_claim(std::move(socket_), std::move(claim));
            return;
        }
        case protocol::acquire_decoder::status::malformed:
            unlink();
            owner_->on_refused(std::move(socket_), peer_, decoder_.error(), bytes);
            return;
    }
}

}  // namespace monolock::server
