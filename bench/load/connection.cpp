#include "load/connection.hpp"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "protocol/frames.hpp"
#include "tls/pem.hpp"

namespace monolock::bench {
namespace {

constexpr int silence_max_ms = 10'000;

[[noreturn]] void throw_unexpected(std::span<const std::byte> answer) {
    throw measurement_error("unexpected answer of " + std::to_string(answer.size()) +
                            " bytes that starts with byte " +
                            std::to_string(std::to_integer<int>(answer.front())));
}

[[noreturn]] void throw_ended(const tls::channel& channel, tls::status how) {
    const bool told = how == tls::status::alerted || how == tls::status::failed;
    throw measurement_error(
        "TLS: " + (told ? channel.failure() : std::string{"the server closed a connection"}));
}

void require_openssl(bool done, const std::string& what) {
    if (!done) {
        throw measurement_error(what + ": " + tls::take_openssl_error());
    }
}

}  // namespace

tls::context make_client_context(const std::string& certificate, const std::string& key) {
    tls::context made = tls::make_context(tls::role::client);
    if (!certificate.empty()) {
        require_openssl(SSL_CTX_use_certificate_chain_file(made.get(), certificate.c_str()) == 1,
                        certificate);
        require_openssl(SSL_CTX_use_PrivateKey_file(made.get(), key.c_str(), SSL_FILETYPE_PEM) == 1,
                        key);
    }
    return made;
}

connection::connection(const endpoint& server, std::size_t serial, const tls::context& context)
    : fd_{connect_to(server, serial)} {
    if (context) {
        channel_ = std::make_unique<tls::channel>(context, tls::role::client, fd_.get());
        static_cast<void>(secured());
    }
}

connection& connection::operator=(connection&& other) noexcept {
    close();
    fd_ = std::move(other.fd_);
    channel_ = std::move(other.channel_);
    secured_ = other.secured_;
    unsent_ = std::move(other.unsent_);
    return *this;
}

void connection::close() noexcept {
    if (channel_) {
        channel_->send_close_notify();
        channel_.reset();
    }
    fd_.reset();
    secured_ = false;
}

void connection::send(std::span<const std::byte> bytes) {
    if (!channel_) {
        send_all(fd_.get(), bytes);
        return;
    }
    if (!secured_) {
        unsent_.assign(bytes.begin(), bytes.end());
        return;
    }
    const auto [outcome, count] = channel_->send(bytes);
    if (outcome != tls::status::ok || count != bytes.size()) {
        throw_ended(*channel_, outcome);
    }
}

// Whether bytes of the protocol can pass; sends what was waiting for that.
bool connection::secured() {
    if (!channel_ || secured_) {
        return true;
    }
    const auto outcome = channel_->handshake();
    if (outcome == tls::status::wants_read) {
        return false;
    }
    if (outcome != tls::status::ok) {  // what a client sends in a handshake fits into a new socket
        throw_ended(*channel_, outcome);
    }
    secured_ = true;
    if (!unsent_.empty()) {
        send(unsent_);
        unsent_ = {};
    }
    return true;
}

// What is there without waiting: at least one byte, or 0 if nothing is.
std::size_t connection::receive(std::span<std::byte> into) {
    if (!secured()) {
        return 0;
    }
    if (channel_) {
        const auto [outcome, count] = channel_->receive(into);
        if (outcome != tls::status::ok && outcome != tls::status::wants_read) {
            throw_ended(*channel_, outcome);
        }
        return count;
    }
    const auto received = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (received < 0 && errno != EAGAIN) {
        throw_errno("recv");
    }
    if (received == 0) {
        throw measurement_error("the server closed a connection");
    }
    return static_cast<std::size_t>(std::max<ssize_t>(received, 0));
}

bool connection::take_acquired() {
    std::array<std::byte, 64> input{};
    const auto answer = std::span{input}.first(receive(input));
    if (answer.empty()) {
        return false;
    }
    if (answer.size() != protocol::acquired_bytes ||
        answer.front() != static_cast<std::byte>(protocol::server_message::acquired)) {
        throw_unexpected(answer);
    }
    return true;
}

void connection::wait_until_readable() const {
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, silence_max_ms);
    if (ready < 0 && errno != EINTR) {
        throw_errno("poll");
    }
    if (ready == 0) {
        throw measurement_error("the server has stopped answering");
    }
}

void connection::receive_frame(std::span<std::byte> frame, std::byte type) {
    for (std::size_t have = 0; have < frame.size();) {
        const auto received = receive(frame.subspan(have));
        have += received;
        if (have > 0 && frame.front() != type) {
            throw_unexpected(frame.first(have));
        }
        if (received == 0) {
            wait_until_readable();
        }
    }
}

std::string connection::negotiated() const {
    if (!secured_) {
        return {};
    }
    SSL* const object = channel_->native();
    const char* const group =
        SSL_group_to_name(object, static_cast<int>(SSL_get_negotiated_group(object)));
    return std::string{SSL_get_version(object)} + ", " + SSL_get_cipher_name(object) + ", " +
           (group == nullptr ? "unknown group" : group);
}

}  // namespace monolock::bench
