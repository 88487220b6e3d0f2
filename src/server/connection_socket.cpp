#include "server/connection_socket.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "posix/peers_word.hpp"

namespace monolock::server {

core::receive_result receive_from(int descriptor, std::span<std::byte> into) noexcept {
    using enum core::receive_status;
    ssize_t count = 0;
    do {
        count = ::recv(descriptor, into.data(), into.size(), MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    if (count > 0) {
        return {.status = bytes, .count = static_cast<std::size_t>(count)};
    }
    if (count == 0) {
        return {.status = peer_closed};
    }
    if (errno == EAGAIN) {
        return {.status = nothing};
    }
    return {.status = posix::is_peers_word(errno) ? peer_closed : silence};
}

core::send_result send_to(int descriptor, std::span<const std::byte> bytes) noexcept {
    using enum core::send_status;
    ssize_t count = 0;
    do {
        count = ::send(descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    if (count >= 0) {
        return {.status = sent, .count = static_cast<std::size_t>(count)};
    }
    if (errno == EAGAIN) {
        return {.status = sent, .count = 0};
    }
    return {.status = posix::is_peers_word(errno) ? peer_closed : silence};
}

connection_socket::connection_socket(loop& on, loose_connection connection)
    : descriptor_{on.get_executor()},
      slot_{std::move(connection.slot)},
      stream_{std::move(connection.stream)} {
    boost::system::error_code refused;
    descriptor_.assign(connection.descriptor.get(), refused);
    if (!refused) {
        static_cast<void>(connection.descriptor.release());
    }
}

std::size_t connection_socket::peek(std::span<std::byte> into) noexcept {
    const ssize_t count =
        ::recv(descriptor_.native_handle(), into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT);
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void connection_socket::shutdown_send() noexcept {
    if (stream_) {
        stream_->send_close_notify();
        stream_.reset();
    }
    static_cast<void>(::shutdown(descriptor_.native_handle(), SHUT_WR));
}

void connection_socket::close() noexcept {
    if (stream_) {
        stream_->send_close_notify();
        stream_.reset();
    }
    boost::system::error_code ignored;  // the descriptor is gone whatever close says
    descriptor_.close(ignored);
    slot_ = {};
}

void connection_socket::abort() noexcept {
    stream_.reset();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    static_cast<void>(
        ::setsockopt(descriptor_.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    close();
}

}  // namespace monolock::server
