#include "server/socket_session.hpp"

namespace monolock::server {

core::receive_result socket_session::receive(std::span<std::byte> into) noexcept {
    return socket_.receive(into);
}

core::send_result socket_session::send(std::span<const std::byte> bytes) noexcept {
    return socket_.send(bytes);
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
