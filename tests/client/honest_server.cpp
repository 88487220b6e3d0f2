#include "honest_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace monolock::testing {

namespace {

// What is small enough always fits into the socket.
template <class Session>
void send_all(const Session& to, std::span<const std::byte> bytes) {
    if (to.channel) {
        static_cast<void>(to.channel->send(bytes));
    } else {
        static_cast<void>(::send(to.connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
                          0);
    }
}

}  // namespace

honest_server::honest_server(std::chrono::milliseconds answer_delay, tls::context with)
    : answer_delay_{answer_delay}, tls_{std::move(with)} {
    start();
}

std::string honest_server::address() const {
    return "127.0.0.1:" + std::to_string(port_);
}

void honest_server::start() {
    listener_ = posix::descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    socklen_t size = sizeof address;
    if (::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
    port_ = ntohs(address.sin_port);
    stopping_ = false;
    thread_ = std::thread{[this] { run(); }};
}

void honest_server::stop() {
    stopping_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
    queues_.clear();
    sessions_.clear();
    listener_.reset();
    connections_ = 0;
}

void honest_server::run() {
    std::vector<pollfd> entries;
    while (!stopping_) {
        entries.assign(1, {.fd = listener_.get(), .events = POLLIN, .revents = 0});
        for (const auto& [fd, who] : sessions_) {
            entries.push_back({.fd = fd, .events = POLLIN, .revents = 0});
        }
        ::poll(entries.data(), entries.size(), 1);
        const auto now = std::chrono::steady_clock::now();
        for (const pollfd& entry : std::span{entries}.subspan(1)) {
            session& who = *sessions_.at(entry.fd);
            if (entry.revents != 0 && !read(who, now)) {
                end(who);
                continue;
            }
            answer_due(who, now);
        }
        if (entries.front().revents != 0) {
            accept_all();
        }
    }
}

void honest_server::accept_all() {
    while (true) {
        posix::descriptor fresh{
            ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (!fresh) {
            return;
        }
        const int fd = fresh.get();
        sessions_[fd] = std::make_unique<session>();
        sessions_[fd]->connection = std::move(fresh);
        if (tls_) {
            sessions_[fd]->channel = std::make_unique<tls::channel>(tls_, tls::role::server, fd);
        }
        ++connections_;
    }
}

bool honest_server::read_tls(session& who, time_point now) {
    tls::status did = tls::status::ok;
    if (!who.secured) {
        did = who.channel->handshake();
        who.secured = did == tls::status::ok;
    }
    std::array<std::byte, 512> buffer{};
    while (did == tls::status::ok) {
        const auto got = who.channel->receive(buffer);
        did = got.outcome;
        take(who, std::span{buffer}.first(got.count), now);
    }
    return did == tls::status::wants_read;
}

bool honest_server::read(session& who, time_point now) {
    if (who.channel) {
        return read_tls(who, now);
    }
    std::array<std::byte, 512> buffer{};
    const auto count = ::recv(who.connection.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) {
        return count < 0 && errno == EAGAIN;
    }
    take(who, std::span{buffer}.first(static_cast<std::size_t>(count)), now);
    return true;
}

void honest_server::take(session& who, std::span<const std::byte> bytes, time_point now) {
    std::size_t used = 0;
    if (!who.admitted) {
        const auto status = who.decoder.feed(bytes, used);
        strange_bytes_ += status == protocol::acquire_decoder::status::malformed ? 1U : 0U;
        if (status != protocol::acquire_decoder::status::complete) {
            return;
        }
        who.admitted = true;
        who.name = who.decoder.take_request().name;
        auto& queue = queues_[who.name];
        queue.push_back(&who);
        if (queue.size() == 1 && !withholding_) {
            grant(who);
        } else {
            send_all(who, protocol::waiting_frame);
            ++queued_;
        }
    }
    for (const std::byte byte : bytes.subspan(used)) {
        if (byte == protocol::heartbeat_frame[0]) {
            who.unanswered.push_back(now);
            ++heartbeats_;
        } else {
            ++strange_bytes_;
        }
    }
}

void honest_server::answer_due(session& who, time_point now) {
    while (!who.unanswered.empty() && who.unanswered.front() + answer_delay_ <= now) {
        who.unanswered.pop_front();
        if (who.token != 0) {
            send_all(who, protocol::encode_acquired({who.token}));
        } else {
            send_all(who, protocol::waiting_frame);
        }
    }
}

void honest_server::grant(session& who) {
    who.token = ++last_token_;
    ++grants_;
    send_all(who, protocol::encode_acquired({who.token}));
}

void honest_server::end(session& who) {
    if (who.admitted) {
        auto& queue = queues_[who.name];
        const bool was_owner = queue.front() == &who;
        queue.erase(std::find(queue.begin(), queue.end(), &who));
        if (queue.empty()) {
            queues_.erase(who.name);
        } else if (was_owner) {
            grant(*queue.front());
        }
    }
    --connections_;
    sessions_.erase(who.connection.get());
}

}  // namespace monolock::testing
