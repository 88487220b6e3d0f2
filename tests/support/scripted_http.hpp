#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::test {

// A request that came to a scripted_http, and the connection that its answer goes to, as a script
// sees them. On the thread of that connection.
class visit {
public:
    std::string path;
    std::string head;  // from the request line to the last header
    std::string body;
    int connection = 0;  // counted from 1, in the order in which they came
    int request = 0;     // the same, over all connections

    explicit visit(int fd) : fd_{fd} {}

    // Bytes as they are. What a peer that is gone does not take is lost.
    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    void answer(std::string_view status, const std::string& content) const {
        send("HTTP/1.1 " + std::string{status} + "\r\nContent-Type: application/json\r\n" +
             "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + content);
    }
    void ok(const std::string& content) const { answer("200 OK", content); }

    void begin_chunks() const { send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
    void chunk(std::string_view bytes) const {
        char size[16];
        const auto end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
        send(std::string{size, end} + "\r\n" + std::string{bytes} + "\r\n");
    }
    void end_chunks() const { chunk(""); }

    // Until the peer closes, or the test ends.
    void wait_for_the_end() const {
        char ignored = 0;
        while (::recv(fd_, &ignored, 1, 0) > 0) {
        }
    }
    void close() const { ::shutdown(fd_, SHUT_RDWR); }

private:
    int fd_;
};

// An HTTP server on the loopback interface that does to each request what a script says.
class scripted_http {
public:
    using script = std::function<void(const visit&)>;

    explicit scripted_http(script what)
        : script_{std::move(what)}, listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        if (::bind(listener_.get(), address, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
            ::getsockname(listener_.get(), address, &size) != 0) {
            throw std::system_error{errno, std::system_category(), "scripted_http"};
        }
        port_ = ntohs(where.sin_port);
        acceptor_ = std::thread{[this] { accept_all(); }};
    }
    scripted_http(const scripted_http&) = delete;
    scripted_http& operator=(const scripted_http&) = delete;
    ~scripted_http() {
        ::shutdown(listener_.get(), SHUT_RDWR);
        acceptor_.join();
        for (connection& each : connections_) {
            ::shutdown(each.fd.get(), SHUT_RDWR);
            each.server.join();
        }
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    // The paths that were asked for, in their order.
    [[nodiscard]] std::vector<std::string> paths() const {
        const std::lock_guard hold{mutex_};
        return paths_;
    }

private:
    struct connection {
        posix::descriptor fd;
        std::thread server;
    };

    void accept_all() {
        for (;;) {
            posix::descriptor fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            if (!fd) {
                return;
            }
            connection& made = connections_.emplace_back();
            made.fd = std::move(fd);
            made.server = std::thread{[this, number = static_cast<int>(connections_.size()),
                                       at = made.fd.get()] { serve(at, number); }};
        }
    }

    void serve(int fd, int number) {
        std::string bytes;
        for (;;) {
            visit here{fd};
            here.connection = number;
            if (!take_request(fd, bytes, here)) {
                return;
            }
            {
                const std::lock_guard hold{mutex_};
                paths_.push_back(here.path);
                here.request = static_cast<int>(paths_.size());
            }
            script_(here);
        }
    }

    static bool take_request(int fd, std::string& bytes, visit& into) {
        std::size_t end = std::string::npos;
        while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
            if (!receive(fd, bytes)) {
                return false;
            }
        }
        into.head = bytes.substr(0, end);
        bytes.erase(0, end + 4);
        const std::size_t path = into.head.find(' ') + 1;
        into.path = into.head.substr(path, into.head.find(' ', path) - path);
        constexpr std::string_view length = "Content-Length: ";
        const std::size_t size =
            std::stoul(into.head.substr(into.head.find(length) + length.size()));
        while (bytes.size() < size) {
            if (!receive(fd, bytes)) {
                return false;
            }
        }
        into.body = bytes.substr(0, size);
        bytes.erase(0, size);
        return true;
    }
    static bool receive(int fd, std::string& into) {
        char piece[4096];
        const ssize_t size = ::recv(fd, piece, sizeof piece, 0);
        into.append(piece, size > 0 ? static_cast<std::size_t>(size) : 0);
        return size > 0;
    }

    script script_;
    posix::descriptor listener_;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    std::vector<std::string> paths_;
    std::list<connection> connections_;  // of the acceptor, and when that has ended of the test
    std::thread acceptor_;
};

}  // namespace monolock::test
