#include "server/shard.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds patience{10'000};

// One shard that listens on a free port of the loopback, as the server would set it up.
class stage {
public:
    stage()
        : around_{.tokens = {},
                  .accepting = {},
                  .hints = {},
                  .tls_handshake_errors = 0,
                  .last_session_id = 0,
                  .hasher = core::name_hasher{{}},
                  .io_timeout = 5s,
                  .tls = {},
                  .log = &log_,
                  .shards = {}} {
        posix::descriptor listening{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
        socklen_t size = sizeof address_;
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(listening.get(), address(), size), 0);
        EXPECT_EQ(::listen(listening.get(), 8), 0);
        EXPECT_EQ(::getsockname(listening.get(), address(), &size), 0);
        around_.shards.push_back(std::make_unique<shard>(around_, 0));
        around_.shards.back()->add_listening(std::move(listening));
        around_.accepting.budget.open(1024);
        around_.shards.back()->start();
    }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() { subject().stop_and_join(); }

    [[nodiscard]] shard& subject() { return *around_.shards.front(); }

    [[nodiscard]] posix::descriptor connect() {
        posix::descriptor connection{::socket(AF_INET, SOCK_STREAM, 0)};
        EXPECT_EQ(::connect(connection.get(), address(), sizeof address_), 0);
        return connection;
    }

private:
    [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    shard_surroundings around_;
    sockaddr_in address_{};
};

// The type of the next frame's first byte, the frame being of that many bytes; zero at the end.
std::uint8_t next_frame(const posix::descriptor& connection, std::size_t size) {
    pollfd entry{.fd = connection.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, static_cast<int>(patience.count())), 1);
    std::array<std::uint8_t, 64> bytes{};
    return ::recv(connection.get(), bytes.data(), size, MSG_WAITALL) > 0 ? bytes.front() : 0;
}

posix::descriptor claim(stage& on, std::string_view name, std::size_t answer_bytes) {
    posix::descriptor connection = on.connect();
    const auto frame = protocol::encode_acquire(60'000, name);
    EXPECT_GT(::send(connection.get(), frame.bytes().data(), frame.bytes().size(), 0), 0);
    EXPECT_NE(next_frame(connection, answer_bytes), 0);
    return connection;
}

// The server ends like this when a thread could not be started, and when a shard is slow to drain.
TEST(shard, stopped_where_it_stands_it_still_ends_its_sessions) {
    auto running = std::make_unique<stage>();
    const posix::descriptor owner = claim(*running, "n", protocol::acquired_bytes);
    const posix::descriptor waiter = claim(*running, "n", protocol::waiting_frame.size());
    running.reset();
    constexpr auto error = static_cast<std::uint8_t>(protocol::server_message::error);
    EXPECT_EQ(next_frame(owner, protocol::error_header_bytes), error);
    EXPECT_EQ(next_frame(waiter, protocol::error_header_bytes), error) << "and not promoted";
}

}  // namespace
}  // namespace monolock::server
