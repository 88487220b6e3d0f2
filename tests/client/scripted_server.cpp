#include "scripted_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "protocol/frames.hpp"

namespace monolock::testing {

namespace {

std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

posix::descriptor checked(int fd) {
    if (fd < 0) {
        throw std::system_error{errno, std::system_category()};
    }
    return posix::descriptor{fd};
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

void listen_at(int fd, int backlog) {
    if (::listen(fd, backlog) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
}

posix::descriptor bind_to_loopback(std::uint16_t& port) {
    auto listener = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
    port = ntohs(address.sin_port);
    return listener;
}

posix::descriptor listen_on_loopback(int backlog, std::uint16_t& port) {
    auto listener = bind_to_loopback(port);
    listen_at(listener.get(), backlog);
    return listener;
}

}  // namespace

std::string acquire_frame(std::string_view name, std::chrono::milliseconds lease) {
    return text(protocol::encode_acquire(static_cast<std::uint32_t>(lease.count()), name).bytes());
}

std::string acquired_frame(std::uint64_t token) {
    return text(protocol::encode_acquired({token}));
}

std::string error_frame(std::uint8_t code, std::string_view reason) {
    return text(protocol::encode_error(static_cast<protocol::error_code>(code), reason).bytes());
}

peer::peer(posix::descriptor connection) noexcept : connection_{std::move(connection)} {}

tls::status peer::secure(const tls::context& with) {
    channel_ = std::make_unique<tls::channel>(with, tls::role::server, connection_.get());
    while (true) {
        const tls::status did = channel_->handshake();
        if (did != tls::status::wants_read) {
            return did;  // a test's own socket takes all that a handshake writes
        }
        if (!readable_within(patience)) {
            throw std::runtime_error{"the client does not shake hands"};
        }
    }
}

bool peer::heard_close_notify() const noexcept {
    return (SSL_get_shutdown(channel_->native()) & SSL_RECEIVED_SHUTDOWN) != 0;
}

bool peer::readable_within(std::chrono::milliseconds how_long) {
    if (channel_ && channel_->holds_input()) {
        return true;
    }
    pollfd entry{.fd = connection_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(how_long.count())) > 0;
}

std::size_t peer::receive(char* into, std::size_t most) {
    if (!channel_) {
        const auto count = ::recv(connection_.get(), into, most, 0);
        return count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    const auto bytes = std::as_writable_bytes(std::span{into, most});
    tls::channel::result got = channel_->receive(bytes);
    while (got.outcome == tls::status::wants_read) {
        if (!readable_within(patience)) {
            throw std::runtime_error{"the client sent a part of a record"};
        }
        got = channel_->receive(bytes);
    }
    return got.count;
}

std::string peer::read(std::size_t count) {
    std::string bytes(count, '\0');
    for (std::size_t got = 0; got < count;) {
        if (!readable_within(patience)) {
            throw std::runtime_error{"the client said too little"};
        }
        const std::size_t more = receive(&bytes[got], count - got);
        if (more == 0) {
            throw std::runtime_error{"the client hung up"};
        }
        got += more;
    }
    return bytes;
}

void peer::expect(std::string_view bytes) {
    if (read(bytes.size()) != bytes) {
        throw std::runtime_error{"the client said something else"};
    }
}

void peer::expect_acquire(std::string_view name, std::chrono::milliseconds lease) {
    expect(acquire_frame(name, lease));
}

void peer::send(std::string_view bytes) {
    // The client may be gone already; the test sees that elsewhere.
    if (channel_) {
        static_cast<void>(channel_->send(std::as_bytes(std::span{bytes})));
        return;
    }
    static_cast<void>(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != 0);
}

bool peer::quiet_for(std::chrono::milliseconds how_long) {
    return !readable_within(how_long);
}

std::size_t peer::answer_until_eof(std::string_view frame) {
    for (std::size_t count = 0;; ++count) {
        if (!readable_within(patience)) {
            throw std::runtime_error{"the client neither beats nor ends"};
        }
        char byte = 0;
        if (receive(&byte, 1) == 0) {
            return count;
        }
        send(frame);
    }
}

bool peer::ends_within(std::chrono::milliseconds how_long) {
    char byte = 0;
    return readable_within(how_long) && receive(&byte, 1) == 0;
}

void peer::reset() noexcept {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    static_cast<void>(
        ::setsockopt(connection_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
    connection_.reset();
}

scripted_server::scripted_server(state at_first) : listener_{bind_to_loopback(port_)} {
    if (at_first == state::open) {
        open();
    }
}

void scripted_server::open() {
    listen_at(listener_.get(), SOMAXCONN);
}

std::string scripted_server::address() const {
    return "127.0.0.1:" + std::to_string(port_);
}

int scripted_server::connect() const {
    auto made = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(port_);
    if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
    return made.release();
}

std::optional<peer> scripted_server::accept_within(std::chrono::milliseconds how_long) {
    pollfd entry{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(how_long.count())) <= 0) {
        return std::nullopt;
    }
    return peer{checked(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))};
}

peer scripted_server::accept() {
    auto accepted = accept_within(patience);
    if (!accepted) {
        throw std::runtime_error{"the client does not connect"};
    }
    return *std::move(accepted);
}

black_hole::black_hole() : listener_{listen_on_loopback(0, port_)} {
    const sockaddr_in address = loopback(port_);
    for (auto& filler : fillers_) {
        filler = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        static_cast<void>(
            ::connect(filler.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
    }
}

std::string black_hole::address() const {
    return "127.0.0.1:" + std::to_string(port_);
}

}  // namespace monolock::testing
