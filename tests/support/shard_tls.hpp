#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "server/tls_files.hpp"
#include "support/pki.hpp"
#include "support/scratch_folder.hpp"
#include "support/tls_server_side.hpp"
#include "tls/channel.hpp"

namespace monolock::test {

// What the shards of a test go by: clients of these authorities.
inline server::tls_setting tls_setting_of(std::uint64_t generation, certificate_authority& own,
                                          const std::string& client_authorities) {
    const scratch_folder folder;
    const credentials shown = own.issue({.dns = {"server"}});
    auto loaded = server::load_tls({.certificate = folder.write("cert", shown.certificate),
                                    .key = folder.write("key", shown.key),
                                    .client_ca = folder.write("ca", client_authorities)});
    EXPECT_TRUE(loaded);
    return {.context = *std::move(loaded), .generation = generation};
}

// A client that shows this and verifies nobody.
inline tls::context client_context(const credentials& own) {
    const tls::context made = tls::make_context(tls::role::client);
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_NONE, nullptr);
    show(made, own);
    return made;
}

// A client that has shaken hands.
class secured_client {
public:
    secured_client(posix::descriptor connection, const credentials& own)
        : connection_{std::move(connection)},
          channel_{client_context(own), tls::role::client, connection_.get()} {
        tls::status did = channel_.handshake();
        while (did == tls::status::wants_read && await_readable()) {
            did = channel_.handshake();
        }
        EXPECT_EQ(did, tls::status::ok);
    }

    secured_client& claim(std::string_view name) {
        send(protocol::encode_acquire(60'000, name).bytes());
        return *this;
    }
    void beat() { send(protocol::heartbeat_frame); }

    // "ACQUIRED", "24 client certificate is no longer trusted", "end", or another failure.
    std::string next() {
        protocol::server_frame_decoder decoder;
        for (;;) {
            std::array<std::byte, 1> byte{};
            const auto got = channel_.receive(byte);
            if (got.outcome == tls::status::wants_read) {
                if (!await_readable()) {
                    return "silence";
                }
                continue;
            }
            if (got.outcome != tls::status::ok) {
                return got.outcome == tls::status::peer_closed ? "end" : channel_.failure();
            }
            std::size_t used = 0;
            if (decoder.feed(byte, used) == protocol::server_frame_decoder::status::frame) {
                break;
            }
        }
        const protocol::server_frame frame = decoder.take_frame();
        if (const auto* const refusal = std::get_if<protocol::error>(&frame)) {
            return std::to_string(static_cast<int>(refusal->code)) + " " + refusal->reason;
        }
        return std::holds_alternative<protocol::acquired>(frame) ? "ACQUIRED" : "WAITING";
    }

private:
    static constexpr std::chrono::milliseconds patience{10'000};

    void send(std::span<const std::byte> bytes) {
        EXPECT_EQ(channel_.send(bytes).count, bytes.size());
    }
    bool await_readable() {
        pollfd entry{.fd = connection_.get(), .events = POLLIN, .revents = 0};
        return ::poll(&entry, 1, static_cast<int>(patience.count())) == 1;
    }

    posix::descriptor connection_;
    tls::channel channel_;
};

}  // namespace monolock::test
