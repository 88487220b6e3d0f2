#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "support/pki.hpp"
#include "support/shard_stage.hpp"
#include "support/shard_tls.hpp"

namespace monolock::server {
namespace {

// What comes right behind an ACQUIRE may be met anywhere on the way of its connection from one
// shard to the other: in the socket before, between and after the two sets that watch it, or inside
// TLS. It must be answered wherever that is. The leases are far longer than the clients' patience:
// a heartbeat that was overlooked is not found by the look at an overdue session.

constexpr int threads = 4;
constexpr std::chrono::milliseconds patience{10'000};

// The same for a plain connection as test::secured_client.
class plain_client {
public:
    explicit plain_client(posix::descriptor connection) : connection_{std::move(connection)} {}

    plain_client& claim(std::string_view name) {
        send(protocol::encode_acquire(60'000, name).bytes());
        return *this;
    }
    void beat() { send(protocol::heartbeat_frame); }

    std::string next() {
        std::array<std::byte, protocol::acquired_bytes> frame{};
        for (std::size_t have = 0; have < frame.size();) {
            pollfd entry{.fd = connection_.get(), .events = POLLIN, .revents = 0};
            if (::poll(&entry, 1, static_cast<int>(patience.count())) != 1) {
                return "silence";
            }
            const auto count =
                ::recv(connection_.get(), frame.data() + have, frame.size() - have, 0);
            if (count <= 0) {
                return "end";
            }
            have += static_cast<std::size_t>(count);
        }
        return frame.front() == static_cast<std::byte>(protocol::server_message::acquired)
                   ? "ACQUIRED"
                   : "another frame";
    }

private:
    void send(std::span<const std::byte> bytes) {
        EXPECT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }

    posix::descriptor connection_;
};

// Says which answer was not the expected one, or nothing.
template <class Client>
std::string trouble_of(Client client, const std::string& name, int round) {
    client.claim(name);
    // Sent apart from the ACQUIRE, and sooner or later after it.
    const int pipelined = round % 4;
    for (int sent = 0; sent < pipelined; ++sent) {
        std::this_thread::sleep_for(std::chrono::microseconds{round * 37 % 256});
        client.beat();
    }
    for (int answer = 0; answer <= pipelined; ++answer) {
        if (const std::string got = client.next(); got != "ACQUIRED") {
            return name + ": answer " + std::to_string(answer) + " is " + got;
        }
    }
    for (int pair = 0; pair < 4; ++pair) {
        client.beat();
        client.beat();
        if (const std::string got = client.next() + client.next(); got != "ACQUIREDACQUIRED") {
            return name + ": a later pair is answered by " + got;
        }
    }
    return {};
}

// All rounds of all threads; what went wrong.
template <class Connect>
std::string storm(int rounds, Connect connect) {
    std::vector<std::string> troubles(threads);
    std::vector<std::thread> clients;
    for (int thread = 0; thread < threads; ++thread) {
        clients.emplace_back([&, thread] {
            std::string& trouble = troubles[static_cast<std::size_t>(thread)];
            for (int round = 0; round < rounds && trouble.empty(); ++round) {
                const std::string name = std::to_string(thread) + '/' + std::to_string(round);
                trouble = trouble_of(connect(), name, round);
            }
        });
    }
    std::string all;
    for (std::size_t thread = 0; thread < clients.size(); ++thread) {
        clients[thread].join();
        all += troubles[thread];
    }
    return all;
}

int rounds_of(const char* variable, int usual) {
    const char* const wish = std::getenv(variable);
    return wish == nullptr ? usual : std::stoi(wish);
}

TEST(shard_handover_stress, what_comes_behind_an_acquire_is_answered) {
    test::shard_stage running{{.shards = 2}};
    running.at(1).start();
    EXPECT_EQ(storm(rounds_of("MONOLOCK_STRESS_ROUNDS", 300),
                    [&] { return plain_client{running.connect()}; }),
              "");
}

TEST(shard_handover_stress, what_comes_behind_an_acquire_is_answered_over_tls) {
    test::certificate_authority authority;
    test::shard_stage running{
        {.tls = test::tls_setting_of(1, authority, authority.certificate()), .shards = 2}};
    running.at(1).start();
    const test::credentials own = authority.issue({.common_names = {"me"}});
    EXPECT_EQ(storm(rounds_of("MONOLOCK_STRESS_ROUNDS", 40),
                    [&] {
                        return test::secured_client{running.connect(), own};
                    }),
              "");
}

}  // namespace
}  // namespace monolock::server
