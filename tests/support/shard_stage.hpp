#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posix/descriptor.hpp"
#include "server/shard.hpp"

namespace monolock::test {

// Shards as the server would set them up; the first one listens on a free port of the loopback.
class shard_stage {
public:
    struct settings {
        server::access_policy access{};
        server::tls_setting tls{};
        std::size_t shards = 1;
        core::mandate_port* mandate = nullptr;  // must outlive the stage
    };

    explicit shard_stage(settings wishes)
        : around_{.access_at_start = std::move(wishes.access),
                  .hasher = core::name_hasher{{}},
                  .io_timeout = std::chrono::seconds{5},
                  .tls_at_start = std::move(wishes.tls),
                  .log = &log_,
                  .mandate = wishes.mandate,
                  .tracks_leases = wishes.mandate != nullptr} {
        if (wishes.mandate != nullptr) {
            around_.tokens.hold_to(*wishes.mandate);
        }
        posix::descriptor listening{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
        socklen_t size = sizeof address_;
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::bind(listening.get(), address(), size) != 0 || ::listen(listening.get(), 8) != 0 ||
            ::getsockname(listening.get(), address(), &size) != 0) {
            throw std::runtime_error{"no port to listen on"};
        }
        for (std::size_t number = 0; number < wishes.shards; ++number) {
            around_.shards.push_back(std::make_unique<server::shard>(around_, number));
        }
        std::vector<posix::descriptor> sockets;
        sockets.push_back(std::move(listening));
        at(0).open(std::move(sockets));
        around_.accepting.budget.open(1024);
        at(0).start();
    }
    shard_stage(const shard_stage&) = delete;
    shard_stage& operator=(const shard_stage&) = delete;
    ~shard_stage() {
        for (const auto& each : around_.shards) {
            each->stop_and_join();
        }
    }

    // All but the first are to be started by the test: until then they do nothing, and what was
    // posted to them waits.
    [[nodiscard]] server::shard& at(std::size_t number) { return *around_.shards.at(number); }
    [[nodiscard]] server::shard_surroundings& surroundings() noexcept { return around_; }
    [[nodiscard]] std::uint64_t denials() const { return around_.acl_denials.load(); }
    [[nodiscard]] std::uint64_t handshake_errors() const {
        return around_.tls_handshake_errors.load();
    }

    // A blocking socket.
    [[nodiscard]] posix::descriptor connect() {
        posix::descriptor connection{::socket(AF_INET, SOCK_STREAM, 0)};
        if (::connect(connection.get(), address(), sizeof address_) != 0) {
            throw std::runtime_error{"cannot connect"};
        }
        return connection;
    }

    // A claim that another shard admitted under the rules of that generation is handed to the first
    // one. Returns the client's end.
    [[nodiscard]] posix::descriptor hand_over(std::string identity, std::string name,
                                              std::uint64_t generation,
                                              std::uint32_t lease_ms = 60'000) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0) {
            throw std::runtime_error{"no pair of sockets"};
        }
        const core::name_hash hash = around_.hasher(name);
        at(0).hand_over({.connection = {.descriptor = posix::descriptor{ends[0]},
                                        .slot = around_.accepting.budget.take()},
                         .peer = {},
                         .identity = std::move(identity),
                         .request = {.lease_ms = lease_ms, .name = std::move(name)},
                         .hash = hash,
                         .received_at = std::chrono::steady_clock::now(),
                         .rest = {},
                         .access_generation = generation});
        return posix::descriptor{ends[1]};
    }

    [[nodiscard]] core::name_hash hash_of(std::string_view name) const {
        return around_.hasher(name);
    }

    // A name whose home is that shard.
    [[nodiscard]] std::string name_at(std::size_t number) const {
        std::string name = "n";
        while (core::shard_of(around_.hasher(name), around_.shards.size()) != number) {
            name += 'n';
        }
        return name;
    }

private:
    [[nodiscard]] sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

    server::logger log_{telemetry::log_level::error, telemetry::log_format::text};
    server::shard_surroundings around_;
    sockaddr_in address_{};
};

}  // namespace monolock::test
