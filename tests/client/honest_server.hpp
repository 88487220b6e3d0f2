#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "tls/channel.hpp"

namespace monolock::testing {

// A small lock server that follows the protocol, for cases that need many connections: FIFO per
// name, pushed promotion, growing tokens, no leases. One thread, from start() to stop(); it can be
// started again on its port.
class honest_server {
public:
    // Heartbeats are answered after the delay. With a context all connections are TLS.
    explicit honest_server(std::chrono::milliseconds answer_delay = {},
                           tls::context with = nullptr);
    honest_server(const honest_server&) = delete;
    honest_server& operator=(const honest_server&) = delete;
    ~honest_server() { stop(); }

    void start();
    // Closes everything at once, as the end of its process would.
    void stop();

    // From now on every claim is only queued, or granted as usual.
    void withhold_grants(bool withhold) noexcept { withholding_ = withhold; }

    [[nodiscard]] std::string address() const;
    [[nodiscard]] std::uint64_t grants() const noexcept { return grants_; }
    [[nodiscard]] std::uint64_t heartbeats() const noexcept { return heartbeats_; }
    // Bytes that were neither an ACQUIRE nor a HEARTBEAT.
    [[nodiscard]] std::uint64_t strange_bytes() const noexcept { return strange_bytes_; }
    // Claims that were told WAITING.
    [[nodiscard]] int queued() const noexcept { return queued_; }
    [[nodiscard]] int connections() const noexcept { return connections_; }

private:
    using time_point = std::chrono::steady_clock::time_point;
    struct session {
        posix::descriptor connection;
        std::unique_ptr<tls::channel> channel;
        bool secured = false;  // the handshake is done
        protocol::acquire_decoder decoder;
        bool admitted = false;
        std::string name;
        std::uint64_t token = 0;
        std::deque<time_point> unanswered;
    };

    void run();
    void accept_all();
    // False when the session is over.
    bool read(session& who, time_point now);
    bool read_tls(session& who, time_point now);
    void take(session& who, std::span<const std::byte> bytes, time_point now);
    void answer_due(session& who, time_point now);
    void grant(session& who);
    void end(session& who);

    std::chrono::milliseconds answer_delay_;
    tls::context tls_;
    std::uint16_t port_ = 0;
    posix::descriptor listener_;
    std::map<int, std::unique_ptr<session>> sessions_;
    std::map<std::string, std::deque<session*>> queues_;  // the owner in front
    std::uint64_t last_token_ = 0;
    std::atomic<std::uint64_t> grants_{0};
    std::atomic<std::uint64_t> heartbeats_{0};
    std::atomic<std::uint64_t> strange_bytes_{0};
    std::atomic<int> queued_{0};
    std::atomic<int> connections_{0};
    std::atomic<bool> withholding_{false};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace monolock::testing
