#include "server/http/http_server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace monolock::server::http {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{10};
constexpr std::size_t connections_max = 8;

task<std::optional<std::string>> next_megabyte() {
    co_return std::string(std::size_t{1} << 20U, 'x');
}

// A piece of that size, once.
struct one_piece {
    std::size_t bytes;
    bool given = false;
};
task<std::optional<std::string>> next_of(std::shared_ptr<one_piece> from) {
    if (std::exchange(from->given, true)) {
        co_return std::nullopt;
    }
    co_return std::string(from->bytes, 'x');
}

task<std::optional<std::string>> next_little() {
    loop_timer timer{co_await boost::asio::this_coro::executor, 20ms};
    co_await timer.async_wait(as_result);
    co_return std::string(500, 'x');
}

task<std::optional<std::string>> broken() {
    throw std::runtime_error{"half way"};
    co_return std::nullopt;
}

// Longer than a request may take to arrive.
task<void> think() {
    loop_timer timer{co_await boost::asio::this_coro::executor, 1200ms};
    co_await timer.async_wait(as_result);
}

constexpr std::size_t long_bytes = std::size_t{500} * 1024;

// "/slow" takes its time, "/endless", "/trickle", "/streamed" and "/broken" are streamed, "/throws"
// throws,
// "/long" and "/streamed" are long, all else is "ok".
task<response> answer(request what) {
    response made = plain_text(status::ok, "ok");
    if (what.target == "/throws") {
        throw std::runtime_error{"cannot answer"};
    }
    if (what.target == "/slow") {
        co_await think();
    }
    if (what.target == "/endless") {
        made.more = [] { return next_megabyte(); };
    }
    if (what.target == "/long") {
        made.body.assign(long_bytes, 'x');
    }
    if (what.target == "/streamed") {
        made.more = [from = std::make_shared<one_piece>(one_piece{.bytes = long_bytes})] {
            return next_of(from);
        };
    }
    if (what.target == "/trickle") {
        made.more = [] { return next_little(); };
    }
    if (what.target == "/broken") {
        made.more = [] { return broken(); };
    }
    co_return made;
}

// A server on a free port of the loopback, whose limits are a second where they would be longer.
class running_server {
public:
    running_server() {
        posix::descriptor listening{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
        socklen_t size = sizeof address_;
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(listening.get(), address(), size) != 0 || ::listen(listening.get(), 64) != 0 ||
            ::getsockname(listening.get(), address(), &size) != 0) {
            throw std::runtime_error{"no port to listen on"};
        }
        server_.listen(std::move(listening));
        thread_ = std::thread{[this] { loop_.run(); }};
    }
    running_server(const running_server&) = delete;
    running_server& operator=(const running_server&) = delete;
    ~running_server() {
        loop_.stop();
        thread_.join();
    }

    // A blocking socket that takes little before its sender has to wait.
    [[nodiscard]] posix::descriptor connect() {
        posix::descriptor made{::socket(AF_INET, SOCK_STREAM, 0)};
        const int room = 4096;
        ::setsockopt(made.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        if (::connect(made.get(), address(), sizeof address_) != 0) {
            throw std::runtime_error{"cannot connect"};
        }
        return made;
    }

private:
    [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    loop loop_{one_thread_hint};
    boost::asio::executor_work_guard<loop::executor_type> work_{loop_.get_executor()};
    http_server server_{loop_,
                        {.answer = [](request what) { return answer(std::move(what)); },
                         .refuse = plain_text,
                         .bounds = {.connections_max = connections_max,
                                    .request_time_max = 1s,
                                    .response_time_max = 1s,
                                    .idle_time_max = 1s},
                         .log = &log_}};
    sockaddr_in address_{};
    std::thread thread_;
};

void send(const posix::descriptor& connection, std::string_view text) {
    EXPECT_EQ(::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
}

void get(const posix::descriptor& connection, const std::string& target) {
    send(connection, "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

// All that comes until the end of the stream, or until it ends with `enough`.
std::string read(const posix::descriptor& connection, std::string_view enough = {}) {
    std::string text;
    std::array<char, 65536> some{};
    for (;;) {
        pollfd entry{.fd = connection.get(), .events = POLLIN, .revents = 0};
        if (::poll(&entry, 1, static_cast<int>(patience / 1ms)) != 1) {
            return text + "(silence)";
        }
        const ssize_t count = ::recv(connection.get(), some.data(), some.size(), 0);
        if (count <= 0) {
            return text;
        }
        text.append(some.data(), static_cast<std::size_t>(count));
        if (!enough.empty() && text.ends_with(enough)) {
            return text;
        }
    }
}

void expect_end_after_a_second(const posix::descriptor& connection, clock::time_point begin) {
    pollfd entry{.fd = connection.get(), .events = POLLRDHUP, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, static_cast<int>(patience / 1ms)), 1);
    EXPECT_GT(clock::now() - begin, 900ms);
}

TEST(http_server, who_takes_too_long_is_ended) {
    running_server running;
    const posix::descriptor silent = running.connect();
    get(silent, "/");
    EXPECT_TRUE(read(silent, "ok\n").ends_with("ok\n"));
    const posix::descriptor reads_nothing = running.connect();
    get(reads_nothing, "/endless");
    const posix::descriptor reads_no_little = running.connect();
    get(reads_no_little, "/trickle");  // long before the kernel's buffers are full
    const posix::descriptor half_a_request = running.connect();
    send(half_a_request, "GET / HTTP/1.1\r\n");
    const auto begin = clock::now();
    const posix::descriptor unhurried = running.connect();
    get(unhurried, "/slow");
    for (const auto* const each : {&silent, &reads_nothing, &reads_no_little, &half_a_request}) {
        expect_end_after_a_second(*each, begin);
    }
    EXPECT_TRUE(read(unhurried, "ok\n").ends_with("ok\n")) << "an endpoint has time of its own";
}

// What came of a response that is read in small portions, for twice as long as any of the limits.
struct slow_reading {
    std::size_t bytes = 0;
    bool good_end = false;
};

slow_reading read_slowly(const posix::descriptor& connection) {
    constexpr int portions = 20;
    slow_reading got;
    std::array<char, long_bytes / portions> some{};
    for (;;) {
        pollfd entry{.fd = connection.get(), .events = POLLIN, .revents = 0};
        if (::poll(&entry, 1, static_cast<int>(patience / 1ms)) != 1) {
            return got;
        }
        const ssize_t count = ::recv(connection.get(), some.data(), some.size(), MSG_WAITALL);
        if (count <= 0) {
            got.good_end = count == 0;
            return got;
        }
        got.bytes += static_cast<std::size_t>(count);
        std::this_thread::sleep_for(2000ms / portions);
    }
}

// Whether the connection ends then or not, and whether or not the peer will send any more.
TEST(http_server, a_slow_but_steady_reader_gets_everything) {
    running_server running;
    std::vector<std::thread> readers;
    for (const char* const request :
         {"GET /long HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /streamed HTTP/1.0\r\n\r\n",
          "GET /long HTTP/1.1\r\n\r\n"}) {
        for (const bool half_closed : {false, true}) {
            readers.emplace_back([connection = running.connect(), request, half_closed] {
                send(connection, request);
                if (half_closed) {
                    ::shutdown(connection.get(), SHUT_WR);
                }
                const slow_reading got = read_slowly(connection);
                EXPECT_GT(got.bytes, long_bytes) << request << half_closed;
                EXPECT_TRUE(got.good_end) << request << half_closed;
            });
        }
    }
    for (std::thread& each : readers) {
        each.join();
    }
}

TEST(http_server, a_reader_that_stalls_is_cut_off) {
    running_server running;
    const posix::descriptor closing = running.connect();
    const posix::descriptor kept = running.connect();
    const auto begin = clock::now();
    send(closing, "GET /long HTTP/1.1\r\nConnection: close\r\n\r\n");
    get(kept, "/long");
    for (const auto* const each : {&closing, &kept}) {
        expect_end_after_a_second(*each, begin);
        EXPECT_LT(read(*each).size(), long_bytes);
    }
}

TEST(http_server, slow_readers_make_room_and_the_newest_is_served) {
    running_server running;
    std::vector<posix::descriptor> slow;
    for (std::size_t count = 0; count < connections_max; ++count) {
        slow.push_back(running.connect());
        get(slow.back(), "/endless");
    }
    for (int round = 0; round < 3; ++round) {
        const posix::descriptor next = running.connect();
        get(next, "/");
        EXPECT_TRUE(read(next, "ok\n").ends_with("ok\n")) << round;
    }
}

TEST(http_server, an_endpoint_that_fails_is_a_500_and_nothing_more) {
    running_server running;
    const posix::descriptor connection = running.connect();
    get(connection, "/throws");
    EXPECT_TRUE(read(connection, "internal error\n").starts_with("HTTP/1.1 500 "));
    get(connection, "/");
    EXPECT_TRUE(read(connection, "ok\n").starts_with("HTTP/1.1 200 ")) << "on the same connection";
}

// Else what the sender took for a body would be run as the next request.
TEST(http_server, a_transfer_encoding_that_is_not_understood_ends_the_connection) {
    running_server running;
    for (const char* const head :
         {"HTTP/1.1\r\nTransfer-Encoding: gzip", "HTTP/1.1\r\nTransfer-Encoding: xchunked",
          "HTTP/1.1\r\nTransfer-Encoding: chunked, identity",
          "HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", "HTTP/1.1\r\nTransfer-Encoding: identity",
          "HTTP/1.1\r\nTransfer-Encoding:",
          "HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
          "HTTP/1.1\r\nTransfer-Encoding: gzip\r\nContent-Length: 3",
          "HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked"}) {
        const posix::descriptor connection = running.connect();
        send(connection, std::string{"POST / "} + head + "\r\n\r\nGET /long HTTP/1.1\r\n\r\n");
        const std::string text = read(connection);
        EXPECT_EQ(text.find(" 400 "), std::string_view{"HTTP/1.1"}.size()) << head << text;
        EXPECT_LT(text.size(), 1000U) << head;
    }
    const posix::descriptor connection = running.connect();
    send(connection, "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    EXPECT_TRUE(read(connection, "ok\n").ends_with("ok\n"));
    get(connection, "/");
    EXPECT_TRUE(read(connection, "ok\n").ends_with("ok\n"));
}

TEST(http_server, a_body_that_waits_to_be_asked_for_is_asked_for_or_refused) {
    running_server running;
    const posix::descriptor connection = running.connect();
    send(connection, "POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n");
    EXPECT_EQ(read(connection, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    send(connection, "x");
    EXPECT_TRUE(read(connection, "ok\n").starts_with("HTTP/1.1 200 "));
    send(connection, "POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx");
    EXPECT_TRUE(read(connection, "ok\n").starts_with("HTTP/1.1 200 ")) << "it is there already";
    const posix::descriptor large = running.connect();
    send(large, "POST / HTTP/1.1\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(read(large).starts_with("HTTP/1.1 413 "));
    const posix::descriptor old = running.connect();
    send(old, "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    send(old, "x");
    EXPECT_TRUE(read(old).starts_with("HTTP/1.0 200 ")) << "which knows no 100";
}

TEST(http_server, a_request_that_is_late_is_told_so) {
    running_server running;
    const posix::descriptor half_a_head = running.connect();
    send(half_a_head, "GET / HTTP/1.1\r\n");
    const posix::descriptor half_a_body = running.connect();
    send(half_a_body, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nx");
    const posix::descriptor silent = running.connect();
    for (const auto* const each : {&half_a_head, &half_a_body}) {
        const std::string text = read(*each);
        EXPECT_TRUE(text.starts_with("HTTP/1.1 408 ")) << text;
        EXPECT_TRUE(text.ends_with("\r\n\r\nthe request took too long\n")) << text;
    }
    EXPECT_EQ(read(silent), "") << "who has asked for nothing";
}

TEST(http_server, an_empty_line_after_a_request_is_not_answered) {
    running_server running;
    const posix::descriptor connection = running.connect();
    get(connection, "/");
    EXPECT_TRUE(read(connection, "ok\n").starts_with("HTTP/1.1 200 "));
    send(connection, "\r\n");
    EXPECT_EQ(read(connection), "") << "and the connection ends when its time is over";
}

// A chunked body without its last chunk: the peer can tell that it is not whole.
TEST(http_server, a_response_that_breaks_off_has_no_end) {
    running_server running;
    const posix::descriptor connection = running.connect();
    get(connection, "/broken");
    const std::string text = read(connection);
    EXPECT_TRUE(text.starts_with("HTTP/1.1 200 ")) << text;
    EXPECT_TRUE(text.ends_with("ok\n\r\n")) << text;
}

}  // namespace
}  // namespace monolock::server::http
