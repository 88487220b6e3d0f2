#include "server/shard.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds patience{10'000};

access_policy policy(std::uint64_t generation, std::vector<config::access_rule> rules) {
    return {.rules = std::make_shared<const config::access_rules>(std::move(rules)),
            .generation = generation};
}

// Shards as the server would set them up; the first one listens on a free port of the loopback.
class stage {
public:
    explicit stage(access_policy access = {}, std::size_t shards = 1)
        : around_{.tokens = {},
                  .accepting = {},
                  .hints = {},
                  .tls_handshake_errors = 0,
                  .access_at_start = std::move(access),
                  .acl_denials = 0,
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
        for (std::size_t number = 0; number < shards; ++number) {
            around_.shards.push_back(std::make_unique<shard>(around_, number));
        }
        at(0).add_listening(std::move(listening));
        around_.accepting.budget.open(1024);
        at(0).start();
    }
    stage(const stage&) = delete;
    stage& operator=(const stage&) = delete;
    ~stage() {
        for (const auto& each : around_.shards) {
            each->stop_and_join();
        }
    }

    // All but the first are to be started by the test: until then they do nothing, and what was
    // posted to them waits.
    [[nodiscard]] shard& at(std::size_t number) { return *around_.shards.at(number); }
    [[nodiscard]] std::uint64_t denials() const { return around_.acl_denials.load(); }

    [[nodiscard]] posix::descriptor connect() {
        posix::descriptor connection{::socket(AF_INET, SOCK_STREAM, 0)};
        EXPECT_EQ(::connect(connection.get(), address(), sizeof address_), 0);
        return connection;
    }

    // A claim that another shard admitted under the rules of that generation is handed to the first
    // one. Returns the client's end.
    [[nodiscard]] posix::descriptor hand_over(std::string identity, std::string name,
                                              std::uint64_t generation) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        const core::name_hash hash = around_.hasher(name);
        at(0).hand_over({.connection = {.descriptor = posix::descriptor{ends[0]},
                                        .slot = around_.accepting.budget.take()},
                         .peer = {},
                         .identity = std::move(identity),
                         .request = {.lease_ms = 60'000, .name = std::move(name)},
                         .hash = hash,
                         .received_at = std::chrono::steady_clock::now(),
                         .rest = {},
                         .access_generation = generation});
        return posix::descriptor{ends[1]};
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

    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    shard_surroundings around_;
    sockaddr_in address_{};
};

// What a client sees next: "WAITING", "ACQUIRED", "ERROR 0x18", "end".
std::string next(const posix::descriptor& connection) {
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

void send(const posix::descriptor& connection, std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(connection.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
}

posix::descriptor claim(stage& on, std::string_view name) {
    posix::descriptor connection = on.connect();
    send(connection, protocol::encode_acquire(60'000, name).bytes());
    return connection;
}

void heartbeat(const posix::descriptor& connection) {
    send(connection, protocol::heartbeat_frame);
}

constexpr std::string_view denied = "ERROR 24";  // 0x18

// The server ends like this when a thread could not be started, and when a shard is slow to drain.
TEST(shard, stopped_where_it_stands_it_still_ends_its_sessions) {
    auto running = std::make_unique<stage>();
    const posix::descriptor owner = claim(*running, "n");
    EXPECT_EQ(next(owner), "ACQUIRED");
    const posix::descriptor waiter = claim(*running, "n");
    EXPECT_EQ(next(waiter), "WAITING");
    running.reset();
    EXPECT_EQ(next(owner), "ERROR 1");
    EXPECT_EQ(next(waiter), "ERROR 1") << "and not promoted";
}

// Without TLS the identity is empty; a star matches it as it matches any.
TEST(shard, a_claim_that_no_rule_permits_is_denied) {
    stage running{policy(1, {{.identity = "*", .locks = {"db/*"}}})};
    const posix::descriptor allowed = claim(running, "db/1");
    EXPECT_EQ(next(allowed), "ACQUIRED");
    EXPECT_EQ(running.denials(), 0U);
    const posix::descriptor refused = claim(running, "db");
    EXPECT_EQ(next(refused), denied);
    EXPECT_EQ(next(refused), "end");
    EXPECT_EQ(running.denials(), 1U);
}

TEST(shard, new_rules_send_waiters_away_and_let_owners_be) {
    stage running{policy(1, {{.identity = "*", .locks = {"*"}}})};
    const posix::descriptor owner = running.hand_over("a", "n", 1);
    EXPECT_EQ(next(owner), "ACQUIRED");
    const posix::descriptor revoked = running.hand_over("b", "n", 1);
    EXPECT_EQ(next(revoked), "WAITING");
    const posix::descriptor allowed = running.hand_over("c", "n", 1);
    EXPECT_EQ(next(allowed), "WAITING");

    running.at(0).adopt_rules(policy(2, {{.identity = "c", .locks = {"*"}}}));
    EXPECT_EQ(next(revoked), denied);
    EXPECT_EQ(next(revoked), "end");
    EXPECT_EQ(running.denials(), 1U);
    heartbeat(allowed);
    EXPECT_EQ(next(allowed), "WAITING");
    heartbeat(owner);
    EXPECT_EQ(next(owner), "ACQUIRED") << "though no rule permits it any more";
    EXPECT_EQ(::shutdown(owner.get(), SHUT_WR), 0);
    EXPECT_EQ(next(allowed), "ACQUIRED");
}

TEST(shard, rules_can_be_the_first_there_are_and_can_deny_all) {
    stage running;
    const posix::descriptor owner = claim(running, "n");
    EXPECT_EQ(next(owner), "ACQUIRED");
    running.at(0).adopt_rules(policy(1, {}));
    const posix::descriptor late = running.hand_over("a", "m", 0);
    EXPECT_EQ(next(late), denied);
}

TEST(shard, a_claim_on_its_way_is_held_to_newer_rules) {
    stage running{policy(1, {{.identity = "*", .locks = {"*"}}})};
    running.at(0).adopt_rules(policy(2, {{.identity = "a", .locks = {"n"}}}));
    const posix::descriptor allowed = running.hand_over("a", "n", 1);
    EXPECT_EQ(next(allowed), "ACQUIRED");
    const posix::descriptor revoked = running.hand_over("b", "n", 1);
    EXPECT_EQ(next(revoked), denied);
    const posix::descriptor elsewhere = running.hand_over("a", "m", 1);
    EXPECT_EQ(next(elsewhere), denied);
    EXPECT_EQ(running.denials(), 2U);
}

// The same with both shards at work: the first admits under the old rules, and the second, which
// has the new ones before it looks at any claim, refuses.
TEST(shard, a_claim_between_two_shards_meets_newer_rules_at_its_home) {
    stage running{policy(1, {{.identity = "*", .locks = {"*"}}}), 2};
    running.at(1).adopt_rules(policy(2, {}));
    const posix::descriptor here = claim(running, running.name_at(0));
    EXPECT_EQ(next(here), "ACQUIRED") << "the first shard has not heard of the new rules";
    const posix::descriptor there = claim(running, running.name_at(1));
    running.at(1).start();
    EXPECT_EQ(next(there), denied);
    EXPECT_EQ(next(there), "end");
}

// The other way round: a home that is behind has nothing to say about what newer rules permitted.
TEST(shard, a_claim_that_newer_rules_permitted_is_not_judged_by_older_ones) {
    stage running{policy(1, {}), 2};
    running.at(0).adopt_rules(policy(2, {{.identity = "*", .locks = {"*"}}}));
    const posix::descriptor there = claim(running, running.name_at(1));
    running.at(1).start();
    EXPECT_EQ(next(there), "ACQUIRED");
}

}  // namespace
}  // namespace monolock::server
