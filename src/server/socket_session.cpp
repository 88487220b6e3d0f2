#include "server/socket_session.hpp"

namespace monolock::server {

core::receive_result socket_session::receive(std::span<std::byte> into) noexcept {
    return socket_.receive(into);
}

core::send_result socket_session::send(std::span<const std::byte> bytes) noexcept {
    return socket_.send(bytes);
}

// A wait that ends after the socket was closed, even one that ended well before and was still on
// its way, finds it closed and stops: the engine hears of no session that it has retired.
//
// A wait for the socket does not do for bytes that TLS took out of it after that wait began, as
// when a lease is judged: they need a wait of their own.
void socket_session::await_readable() {
    bool& awaited = socket_.holds_input() ? awaits_held_input_ : awaits_readable_;
    if (std::exchange(awaited, true)) {
        return;
    }
    socket_.wait_readable([self = boost::intrusive_ptr<socket_session>{this},
                           &awaited](const boost::system::error_code&) {
        awaited = false;
        if (self->socket_.is_open()) {
            self->owner_->on_readable(*self);
        }
    });
}

void socket_session::await_writable() {
    if (std::exchange(awaits_writable_, true)) {
        return;
    }
    socket_.wait_writable(
        [self = boost::intrusive_ptr<socket_session>{this}](const boost::system::error_code&) {
            self->awaits_writable_ = false;
            if (self->socket_.is_open()) {
                self->owner_->on_writable(*self);
            }
        });
}

void socket_session::drop_connection() noexcept {
    socket_.close();
}

void socket_session::retire(core::closing how) noexcept {
    if (socket_.is_open()) {
        switch (how) {
            case core::closing::plain:
                if (socket_.owes_alert()) {
                    owner_->on_linger(std::move(socket_));
                } else {
                    socket_.close();
                }
                break;
            case core::closing::abort:
                socket_.abort();
                break;
            case core::closing::linger:
                owner_->on_linger(std::move(socket_));
                break;
        }
    }
    intrusive_ptr_release(this);
}

}  // namespace monolock::server
