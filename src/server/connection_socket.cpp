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

connection_socket::connection_socket(readiness_set& in, loose_connection connection)
    : descriptor_{std::move(connection.descriptor)},
      slot_{std::move(connection.slot)},
      stream_{std::move(connection.stream)},
      watch_{in.add(descriptor_.get())} {
    if (!watch_) {
        close();
    } else if (connection.breaks_off) {
        watch_->expect_breaks();
    }
}

core::receive_result connection_socket::receive_plain(std::span<std::byte> into) noexcept {
    const core::receive_result got = receive_from(descriptor_.get(), into);
    if (got.status == core::receive_status::nothing) {
        watch_->found_empty();
    } else if (got.status == core::receive_status::bytes && got.count < into.size()) {
        watch_->found_less();
    }
    return got;
}

core::receive_result connection_socket::receive_secured(std::span<std::byte> into) noexcept {
    const core::receive_result got = stream_->receive(into);
    note_socket_read();
    return got;
}

void connection_socket::note_socket_read() noexcept {
    switch (stream_->last_socket_read()) {
        case tls::channel::socket_read::none:
        case tls::channel::socket_read::full:
            break;
        case tls::channel::socket_read::less:
            watch_->found_less();
            break;
        case tls::channel::socket_read::empty:
            watch_->found_empty();
            break;
    }
}

std::size_t connection_socket::peek(std::span<std::byte> into) noexcept {
    const ssize_t count =
        ::recv(descriptor_.get(), into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT);
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void connection_socket::await_readable(readiness_handler& who) {
    using enum readiness_set::readiness;
    if (stream_ && stream_->holds_input()) {
        watch_->readable_anyway(who);
    } else {
        watch_->await_readable(who, stream_ && stream_->receive_wants_write() ? output : input);
    }
}

void connection_socket::await_writable(readiness_handler& who) {
    using enum readiness_set::readiness;
    watch_->await_writable(who, stream_ && stream_->send_wants_read() ? input : output);
}

void connection_socket::shutdown_send() noexcept {
    if (stream_) {
        stream_->send_close_notify();
        stream_.reset();
    }
    static_cast<void>(::shutdown(descriptor_.get(), SHUT_WR));
}

void connection_socket::close() noexcept {
    if (stream_) {
        stream_->send_close_notify();
        stream_.reset();
    }
    watch_.reset();
    descriptor_.reset();
    slot_ = {};
}

void connection_socket::abort() noexcept {
    stream_.reset();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    static_cast<void>(
        ::setsockopt(descriptor_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    close();
}

loose_connection connection_socket::release() {
    const bool breaks_off = watch_->breaks_off();
    watch_->let_go();
    watch_.reset();
    return {.descriptor = std::move(descriptor_),
            .slot = std::move(slot_),
            .stream = std::move(stream_),
            .breaks_off = breaks_off};
}

}  // namespace monolock::server
