#include "server/shard.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "support/shard_stage.hpp"

namespace monolock::server {
namespace {

using stage = test::shard_stage;

constexpr std::chrono::milliseconds patience{10'000};

access_policy policy(std::uint64_t generation, std::vector<config::access_rule> rules) {
    return {.rules = std::make_shared<const config::access_rules>(std::move(rules)),
            .generation = generation};
}

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
    auto running = std::make_unique<stage>(stage::settings{});
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
    stage running{{.access = policy(1, {{.identity = "*", .locks = {"db/*"}}})}};
    const posix::descriptor allowed = claim(running, "db/1");
    EXPECT_EQ(next(allowed), "ACQUIRED");
    EXPECT_EQ(running.denials(), 0U);
    const posix::descriptor refused = claim(running, "db");
    EXPECT_EQ(next(refused), denied);
    EXPECT_EQ(next(refused), "end");
    EXPECT_EQ(running.denials(), 1U);
}

TEST(shard, new_rules_send_waiters_away_and_let_owners_be) {
    stage running{{.access = policy(1, {{.identity = "*", .locks = {"*"}}})}};
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
    stage running{{}};
    const posix::descriptor owner = claim(running, "n");
    EXPECT_EQ(next(owner), "ACQUIRED");
    running.at(0).adopt_rules(policy(1, {}));
    const posix::descriptor late = running.hand_over("a", "m", 0);
    EXPECT_EQ(next(late), denied);
}

TEST(shard, a_claim_on_its_way_is_held_to_newer_rules) {
    stage running{{.access = policy(1, {{.identity = "*", .locks = {"*"}}})}};
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
    stage running{{.access = policy(1, {{.identity = "*", .locks = {"*"}}}), .shards = 2}};
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
    stage running{{.access = policy(1, {}), .shards = 2}};
    running.at(0).adopt_rules(policy(2, {{.identity = "*", .locks = {"*"}}}));
    const posix::descriptor there = claim(running, running.name_at(1));
    running.at(1).start();
    EXPECT_EQ(next(there), "ACQUIRED");
}

// All are overdue at once, as after a pause of the machine. How many are looked at in a turn of the
// loop must not depend on who else is served in that turn, since each of those asks for the next
// look.
TEST(shard, overdue_sessions_take_no_more_of_a_turn_because_others_are_served) {
    constexpr std::uint64_t overdue = 320;
    constexpr std::uint64_t in_a_turn = 64;
    stage running{{}};
    shard& one = running.at(0);
    const posix::descriptor busy = claim(running, "busy");
    EXPECT_EQ(next(busy), "ACQUIRED");

    std::promise<void> go_on;
    one.ask([wait = go_on.get_future().share()] { wait.wait(); });
    const std::vector<std::byte> much(20 * core::session_engine::receive_bytes_max,
                                      protocol::heartbeat_frame.front());
    send(busy, much);  // enough for as many turns
    std::vector<posix::descriptor> silent;
    for (std::uint64_t index = 0; index < overdue; ++index) {
        silent.push_back(running.hand_over("", std::to_string(index), 0, 1));
    }
    std::vector<std::uint64_t> ended;  // as each turn found it
    std::promise<void> all_ended;
    std::function<void()> look = [&] {
        ended.push_back(one.counters().releases(core::end_reason::expired));
        if (ended.back() < overdue) {
            one.ask(look);
        } else {
            all_ended.set_value();
        }
    };
    one.ask(look);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});  // the last lease
    go_on.set_value();
    ASSERT_EQ(all_ended.get_future().wait_for(patience), std::future_status::ready);
    for (std::size_t turn = 1; turn < ended.size(); ++turn) {
        EXPECT_LE(ended[turn] - ended[turn - 1], in_a_turn) << "in turn " << turn;
    }
}

}  // namespace
}  // namespace monolock::server
