#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "support/shard_stage.hpp"

// A client's side of a shard_stage, one step at a time.
namespace monolock::test {

// Of a client with the server's next word.
inline constexpr std::chrono::milliseconds patience{10'000};

// What a client sees next: "WAITING", "ACQUIRED", "ERROR 24" for code 0x18, "end".
inline std::string next(const posix::descriptor& connection) {
    protocol::server_frame_decoder decoder;
    for (;;) {
        pollfd entry{.fd = connection.get(), .events = POLLIN, .revents = 0};
        if (::poll(&entry, 1, static_cast<int>(patience.count())) != 1) {
            return "silence";
        }
        std::byte byte{};  // one at a time: what follows the frame is the next call's
        if (::recv(connection.get(), &byte, 1, 0) <= 0) {
            return "end";
        }
        std::size_t used = 0;
        const auto status = decoder.feed({&byte, 1}, used);
        if (status == protocol::server_frame_decoder::status::malformed) {
            return "malformed";
        }
        if (status == protocol::server_frame_decoder::status::frame) {
            break;
        }
    }
    const protocol::server_frame frame = decoder.take_frame();
    if (const auto* const refusal = std::get_if<protocol::error>(&frame)) {
        return "ERROR " + std::to_string(static_cast<int>(refusal->code));
    }
    return std::holds_alternative<protocol::acquired>(frame) ? "ACQUIRED" : "WAITING";
}

inline void send(const posix::descriptor& connection, std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
}

inline posix::descriptor claim(shard_stage& on, std::string_view name,
                               std::uint32_t lease_ms = 60'000) {
    posix::descriptor connection = on.connect();
    send(connection, protocol::encode_acquire(lease_ms, name).bytes());
    return connection;
}

inline void heartbeat(const posix::descriptor& connection) {
    send(connection, protocol::heartbeat_frame);
}

}  // namespace monolock::test
