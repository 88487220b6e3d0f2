#include "load/attempt.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "protocol/frames.hpp"

namespace monolock::bench {

attempt::attempt(const target& to, std::size_t serial, std::chrono::milliseconds lease)
    : fd_{begin_to_connect(to.server, serial)},
      serial_{serial},
      lease_{lease},
      stage_{stage::connecting} {}

std::size_t attempt::advance(const target& to, std::uint32_t events) {
    if (stage_ == stage::connecting) {
        connected(to, events);
    }
    if (stage_ == stage::securing) {
        secure();
    }
    if (stage_ == stage::claiming || is_admitted()) {
        return take_frames();
    }
    return 0;
}

void attempt::connected(const target& to, std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        end(ending::refused);
    } else if ((events & EPOLLOUT) != 0 && to.client) {
        channel_ = std::make_unique<tls::channel>(to.client, tls::role::client, fd_.get());
        stage_ = stage::securing;
    } else if ((events & EPOLLOUT) != 0) {
        claim();
    }
}

void attempt::secure() {
    switch (channel_->handshake()) {
        case tls::status::ok:
            claim();
            break;
        case tls::status::wants_read:
        case tls::status::wants_write:
            break;
        case tls::status::peer_closed:
        case tls::status::alerted:
        case tls::status::silence:
        case tls::status::failed:
            end(ending::broken);
            break;
    }
}

void attempt::claim() {
    stage_ = stage::claiming;
    send(protocol::encode_acquire(static_cast<std::uint32_t>(lease_.count()), lock_name(serial_))
             .bytes());
}

void attempt::beat() {
    send(protocol::heartbeat_frame);
}

// The frames of a client are far smaller than a socket buffer: what does not go out at once never
// will.
void attempt::send(std::span<const std::byte> bytes) {
    const bool sent = channel_ ? channel_->send(bytes).count == bytes.size()
                               : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                                     static_cast<ssize_t>(bytes.size());
    if (!sent) {
        static_cast<void>(take_frames());  // the server's last word may wait there
        if (stage_ != stage::ended) {
            end(ending::broken);
        }
    }
}

std::size_t attempt::take_frames() {
    std::array<std::byte, 512> input;  // NOLINT: filled below
    std::size_t answers = 0;
    while (stage_ != stage::ended) {
        const auto count = receive(input);
        if (count == 0) {
            break;
        }
        answers += take(std::span{input}.first(count));
    }
    return answers;
}

// Frames are short and written whole, so they arrive whole.
std::size_t attempt::take(std::span<const std::byte> bytes) {
    std::size_t answers = 0;
    protocol::server_frame_decoder decoder;
    while (!bytes.empty() && stage_ != stage::ended) {
        std::size_t used = 0;
        if (decoder.feed(bytes, used) != protocol::server_frame_decoder::status::frame) {
            throw measurement_error("unexpected bytes from the server");
        }
        bytes = bytes.subspan(used);
        const auto frame = decoder.take_frame();
        if (std::holds_alternative<protocol::error>(frame)) {
            end(ending::told);
        } else if (std::holds_alternative<protocol::waiting>(frame)) {
            answers += stage_ == stage::waiting ? 1 : 0;
            stage_ = stage::waiting;
        } else {  // the first answers the ACQUIRE or is pushed
            answers += stage_ == stage::owning ? 1 : 0;
            stage_ = stage::owning;
        }
    }
    return answers;
}

// What is there: at least one byte, or 0 if nothing is or the connection ended.
std::size_t attempt::receive(std::span<std::byte> into) {
    if (channel_) {
        const auto [outcome, count] = channel_->receive(into);
        if (outcome != tls::status::ok && outcome != tls::status::wants_read) {
            end(outcome == tls::status::peer_closed && channel_->system_error() == 0
                    ? ending::closed
                    : ending::broken);
        }
        return count;
    }
    const auto received = ::recv(fd_.get(), into.data(), into.size(), 0);
    if (received == 0) {
        end(ending::closed);
    } else if (received < 0 && errno != EAGAIN) {
        end(ending::broken);
    }
    return received > 0 ? static_cast<std::size_t>(received) : 0;
}

void attempt::end(ending how) noexcept {
    close();
    stage_ = stage::ended;
    ending_ = how;
}

void attempt::close() noexcept {
    if (channel_) {
        channel_->send_close_notify();
        channel_.reset();
    }
    fd_.reset();
    stage_ = stage::none;
}

}  // namespace monolock::bench
