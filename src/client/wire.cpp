#include "client/wire.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "monolock/error.hpp"

namespace monolock::detail {

void wire::open(posix::descriptor connected) noexcept {
    input_needs_ = EPOLLIN;
    output_needs_ = 0;
    end_ = {};
    socket_.store(connected.release());
}

void wire::secure(const tls::context& from, const security& how) {
    channel_.emplace(from, tls::role::client, socket_.load());
    how_ = &how;
    tls::expect_server(*channel_, how.expected);
}

wire::status wire::handshake() {
    const tls::status did = channel_->handshake();
    input_needs_ = did == tls::status::wants_write ? EPOLLOUT : EPOLLIN;
    return take(did);
}

wire::result wire::receive(std::span<std::byte> into) {
    if (channel_) {
        const auto got = channel_->receive(into);
        // A record may have to be answered before more is read.
        input_needs_ = got.outcome == tls::status::wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
        return {.outcome = take(got.outcome), .count = got.count};
    }
    ssize_t count = 0;
    do {
        count = ::recv(socket_.load(), into.data(), into.size(), MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    if (count > 0) {
        return {.outcome = status::ok, .count = static_cast<std::size_t>(count)};
    }
    if (count < 0 && errno == EAGAIN) {
        return {.outcome = status::blocked};
    }
    return {.outcome = end_by_system(count == 0 ? 0 : errno)};
}

wire::result wire::send(std::span<const std::byte> bytes) {
    output_needs_ = 0;
    result did;
    if (channel_) {
        const auto sent = channel_->send(bytes);
        did = {.outcome = take(sent.outcome), .count = sent.count};
    } else {
        ssize_t count = 0;
        do {
            count = ::send(socket_.load(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        } while (count < 0 && errno == EINTR);
        if (count >= 0) {
            did.count = static_cast<std::size_t>(count);
        } else {
            did.outcome = errno == EAGAIN ? status::blocked : end_by_system(errno);
        }
    }
    if (did.outcome == status::blocked) {
        output_needs_ = EPOLLOUT;
    }
    return did;
}

wire::status wire::take(tls::status did) {
    switch (did) {
        case tls::status::ok:
            return status::ok;
        case tls::status::wants_read:
        case tls::status::wants_write:
            return status::blocked;
        case tls::status::peer_closed:
        case tls::status::silence:
            return end_by_system(channel_->system_error());
        case tls::status::alerted:
        case tls::status::failed:
            return end_by_tls();
    }
    return status::closed;
}

// `error`: 0 for the end of file. What TLS said before stands.
wire::status wire::end_by_system(int error) {
    if (!end_.code) {
        end_ = {.code = make_error_code(errc::connection_closed),
                .detail = error == 0 ? std::string{} : std::system_category().message(error)};
    }
    return status::closed;
}

wire::status wire::end_by_tls() {
    const auto code_of = [](tls::client_end what) {
        switch (what) {
            case tls::client_end::server_not_trusted:
                return errc::server_not_trusted;
            case tls::client_end::certificate_refused:
                return errc::certificate_refused;
            case tls::client_end::no_tls:
            case tls::client_end::other:
                break;
        }
        return errc::tls_failed;
    };
    const std::string& shown = how_->files.certificate;
    end_ = {.code = make_error_code(code_of(tls::client_end_of(*channel_, !shown.empty()))),
            .detail = tls::explain_client_end(*channel_, how_->expected, shown)};
    return status::closed;
}

void wire::close() noexcept {
    // The number is forgotten before it is closed: a child forked in between must not close what
    // may have become another file.
    if (const int fd = socket_.exchange(-1); fd >= 0) {
        if (channel_) {
            channel_->send_close_notify();
        }
        ::shutdown(fd, SHUT_RDWR);  // a forked child may hold a copy
        ::close(fd);
    }
    channel_.reset();
}

void wire::abandon() noexcept {
    if (const int fd = socket_.exchange(-1); fd >= 0) {
        ::close(fd);  // without shutdown: the connection is the parent's
    }
}

}  // namespace monolock::detail
