#include "cli/admin/admin_channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/admin/admin_error.hpp"
#include "posix/descriptor.hpp"

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

std::string response(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

// A server that answers each request with the next of its texts, on as many connections as it
// takes. An empty text closes the connection instead; "hold" says nothing and waits for the end.
class scripted_server {
public:
    explicit scripted_server(std::vector<std::string> script) : script_{std::move(script)} {
        listening_ = posix::descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        EXPECT_EQ(::bind(listening_.get(), address, size), 0);
        EXPECT_EQ(::listen(listening_.get(), 8), 0);
        EXPECT_EQ(::getsockname(listening_.get(), address, &size), 0);
        port_ = ntohs(where.sin_port);
        thread_ = std::thread{[this] { serve(); }};
    }
    scripted_server(const scripted_server&) = delete;
    scripted_server& operator=(const scripted_server&) = delete;
    ~scripted_server() { finish(); }

    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

    // Ends it; the requests that came, up to their empty line.
    const std::vector<std::string>& finish() {
        stopping_ = true;
        if (thread_.joinable()) {
            ::shutdown(listening_.get(), SHUT_RDWR);
            thread_.join();
        }
        return requests_;
    }
    [[nodiscard]] int connections() const { return connections_; }

private:
    void serve() {
        while (!stopping_) {
            const posix::descriptor connected{
                ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            if (connected) {
                ++connections_;
                while (serve_one(connected.get())) {
                }
            }
        }
    }

    [[nodiscard]] bool serve_one(int fd) {
        std::string request;
        while (request.find("\r\n\r\n") == std::string::npos) {
            std::array<char, 1024> block{};
            pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
            while (!stopping_ && ::poll(&polled, 1, 10) == 0) {
            }
            const ssize_t size = stopping_ ? 0 : ::recv(fd, block.data(), block.size(), 0);
            if (size <= 0) {
                return false;
            }
            request.append(block.data(), static_cast<std::size_t>(size));
        }
        requests_.push_back(request);
        const std::string answer = next_ < script_.size() ? script_[next_++] : "";
        if (answer == "hold") {
            return true;
        }
        ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        // What has no length is as long as the connection.
        return answer.find("Content-Length") != std::string::npos;
    }

    std::vector<std::string> script_;
    std::size_t next_ = 0;
    posix::descriptor listening_;
    int port_ = 0;
    std::vector<std::string> requests_;
    std::atomic<int> connections_ = 0;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;
};

template <class Call>
std::pair<exit_code, std::string> failure_of(Call call) {
    try {
        call();
    } catch (const admin_error& failed) {
        return {failed.status(), failed.what()};
    }
    return {exit_code{0}, "nothing failed"};
}

TEST(admin_channel, asks_and_keeps_the_connection) {
    scripted_server server{{response("{\"a\":1}"), response("no", "404 Not Found")}};
    admin_channel channel{server.address()};
    const admin_answer first = channel.get("/api/info");
    EXPECT_EQ(first.status, 200U);
    EXPECT_EQ(first.body, "{\"a\":1}");
    const admin_answer second = channel.get("/api/lock?name=%2e");
    EXPECT_EQ(second.status, 404U);
    EXPECT_EQ(second.body, "no");
    EXPECT_EQ(server.connections(), 1);
    const auto& requests = server.finish();
    ASSERT_EQ(requests.size(), 2U);
    EXPECT_THAT(requests[0],
                StartsWith("GET /api/info HTTP/1.1\r\nHost: " + server.address() + "\r\n"));
    EXPECT_THAT(requests[1], StartsWith("GET /api/lock?name=%2e HTTP/1.1\r\n"));
}

// A name is none that the server needs to know: it is asked by the number that it was reached at.
TEST(admin_channel, the_host_is_a_number) {
    scripted_server server{{response("{}")}};
    admin_channel channel{"localhost:" + server.address().substr(10)};
    EXPECT_EQ(channel.get("/").status, 200U);
    EXPECT_THAT(server.finish().front(), HasSubstr("\r\nHost: " + server.address() + "\r\n"));
}

TEST(admin_channel, a_kept_connection_that_has_ended_is_made_anew) {
    // An empty script entry takes the second request and closes, as a server does that had enough.
    scripted_server server{{response("one"), "", response("two")}};
    admin_channel channel{server.address()};
    EXPECT_EQ(channel.get("/").body, "one");
    EXPECT_EQ(channel.get("/").body, "two");
    EXPECT_EQ(server.connections(), 2);
}

TEST(admin_channel, a_change_is_sent_once) {
    scripted_server server{{"", response("{}")}};
    admin_channel channel{server.address()};
    const auto [status, why] =
        failure_of([&] { static_cast<void>(channel.change("POST", "/api/lock/release?name=n")); });
    EXPECT_EQ(status, exit_code::unreachable);
    EXPECT_EQ(why, server.address() +
                       ": the connection was closed; whether the claim was ended is not known");
    const auto& requests = server.finish();
    ASSERT_EQ(requests.size(), 1U);
    EXPECT_THAT(requests[0], StartsWith("POST /api/lock/release?name=n HTTP/1.1\r\n"));
    EXPECT_THAT(requests[0], HasSubstr("\r\nContent-Length: 0\r\n"));
}

TEST(admin_channel, a_server_that_says_nothing_is_not_waited_for) {
    for (const char* const text : {"hold", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"}) {
        scripted_server server{{text}};
        admin_channel channel{server.address(), {.answer_time_max = 50ms}};
        const auto begun = std::chrono::steady_clock::now();
        const auto [status, why] = failure_of([&] { static_cast<void>(channel.get("/")); });
        EXPECT_EQ(status, exit_code::unreachable);
        EXPECT_EQ(why, server.address() + ": no answer in time");
        EXPECT_GE(std::chrono::steady_clock::now() - begun, 50ms);
    }
}

TEST(admin_channel, what_is_no_answer_is_told_from_one) {
    const std::vector<std::pair<std::string, std::pair<exit_code, std::string>>> cases{
        {"SSH-2.0-OpenSSH_9.2\r\n",
         {exit_code::refused, "no admin API of monolock answers there: bad version"}},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + std::string(2000, 'x'),
         {exit_code::refused, "the answer is too large"}},
        {response(std::string(2000, 'x')), {exit_code::refused, "the answer is too large"}},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
         {exit_code::unreachable, "the answer breaks off"}},
        {"", {exit_code::unreachable, "the connection was closed"}},
    };
    for (const auto& [text, expected] : cases) {
        scripted_server server{{text}};
        admin_channel channel{server.address(), {.answer_bytes_max = 1000}};
        const auto failed = failure_of([&] { static_cast<void>(channel.get("/")); });
        EXPECT_EQ(failed.first, expected.first) << text;
        EXPECT_EQ(failed.second, server.address() + ": " + expected.second);
    }
}

// Any server may send them, and a proxy before it.
TEST(admin_channel, interim_answers_are_skipped) {
    const std::string interim =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n";
    scripted_server pages{{interim + response("one"), interim + response("two")}};
    admin_channel reader{pages.address()};
    EXPECT_EQ(reader.get("/").body, "one");
    const admin_answer second = reader.get("/");
    EXPECT_EQ(second.status, 200U);
    EXPECT_EQ(second.body, "two");
    EXPECT_EQ(pages.connections(), 1);

    scripted_server streaming{{interim +
                               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " +
                               std::string(3000, 'x') + "\n\n"}};
    admin_channel watcher{streaming.address(), {.answer_bytes_max = 1000}};
    watcher.begin_events("/api/events");
    EXPECT_EQ(watcher.next_event().data.size(), 3000U);
}

TEST(admin_channel, an_answer_comes_after_the_interim_ones) {
    const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
    std::string many;
    for (int count = 0; count < 100; ++count) {
        many += interim;
    }
    const std::vector<std::pair<std::string, std::pair<exit_code, std::string>>> cases{
        {interim, {exit_code::unreachable, "the answer breaks off"}},
        {many + response("{}"), {exit_code::refused, "nothing but interim answers"}},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
         {exit_code::refused, "it wants to speak another protocol"}},
    };
    for (const auto& [text, expected] : cases) {
        scripted_server server{{text}};
        admin_channel channel{server.address()};
        const auto failed = failure_of([&] { static_cast<void>(channel.get("/")); });
        EXPECT_EQ(failed.first, expected.first);
        EXPECT_THAT(failed.second, HasSubstr(expected.second));
    }
}

TEST(admin_channel, an_interrupt_ends_any_wait) {
    const posix::descriptor event{::eventfd(1, EFD_CLOEXEC)};
    scripted_server server{{"hold"}};
    admin_channel channel{server.address(), {}, event.get()};
    EXPECT_THROW(static_cast<void>(channel.get("/")), interrupted);
}

TEST(admin_channel, events_come_one_by_one) {
    scripted_server server{
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1a\r\nevent: a\ndata: 1\n\nevent: b\r\n9\r\n\ndata: 2\n\r\n1\r\n\n\r\n0\r\n\r\n"}};
    admin_channel channel{server.address()};
    channel.begin_events("/api/events");
    const server_event first = channel.next_event();
    EXPECT_EQ(first.kind + first.data, "a1");
    const server_event second = channel.next_event();
    EXPECT_EQ(second.kind + second.data, "b2");
    const auto [status, why] = failure_of([&] { static_cast<void>(channel.next_event()); });
    EXPECT_EQ(status, exit_code::unreachable);
    EXPECT_EQ(why, server.address() + ": the server has ended the stream");
}

TEST(admin_channel, a_stream_has_bounds) {
    scripted_server server{
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\ndata: " +
             std::string(3000, 'x'),
         response("", "503 Busy"), response("{}", "200 OK")}};
    admin_channel channel{server.address(), {.event_bytes_max = 1000}};
    channel.begin_events("/api/events");
    EXPECT_THAT(failure_of([&] { static_cast<void>(channel.next_event()); }).second,
                HasSubstr("an event is too large"));
    const auto [status, why] = failure_of([&] { channel.begin_events("/api/events"); });
    EXPECT_EQ(status, exit_code::unreachable);
    EXPECT_THAT(why, HasSubstr("the server answers 503"));
    EXPECT_EQ(failure_of([&] { channel.begin_events("/api/events"); }).first, exit_code::refused)
        << "not events, though an answer";
}

}  // namespace
}  // namespace monolock::cli
