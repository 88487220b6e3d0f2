#include "server/shard.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "server/failover/mandate.hpp"
#include "support/shard_client.hpp"
#include "support/shard_stage.hpp"

namespace monolock::server {
namespace {

using stage = test::shard_stage;

using test::claim;
using test::heartbeat;
using test::next;
using test::patience;
using test::send;

access_policy policy(std::uint64_t generation, std::vector<config::access_rule> rules) {
    return {.rules = std::make_shared<const config::access_rules>(std::move(rules)),
            .generation = generation};
}

constexpr std::string_view denied = "ERROR 24";  // 0x18

constexpr std::string_view shutting_down = "ERROR 1";

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

// --- the mandate of one of several servers is over, and nobody has ended the sessions yet

// Clients stop for good at a refusal from 0x10 up, though the server that is active may have
// another opinion.
TEST(shard, without_a_mandate_a_claim_is_sent_away_whatever_is_wrong_with_it) {
    mandate over;  // from the start
    stage running{{.access = policy(1, {{.identity = "*", .locks = {"db/*"}}}), .mandate = &over}};
    const posix::descriptor good = claim(running, "db/1");
    const posix::descriptor denied_later = claim(running, "n");
    const posix::descriptor strange = running.connect();
    send(strange, std::array{std::byte{0x7f}});
    const posix::descriptor early_beat = running.connect();
    heartbeat(early_beat);
    const posix::descriptor on_its_way = running.hand_over("a", "db/1", 1);
    const posix::descriptor on_its_way_denied = running.hand_over("a", "n", 0);
    for (const auto* each :
         {&good, &denied_later, &strange, &early_beat, &on_its_way, &on_its_way_denied}) {
        EXPECT_EQ(next(*each), shutting_down);
        EXPECT_EQ(next(*each), "end");
    }
    EXPECT_EQ(running.denials(), 0U);
}

TEST(shard, with_a_mandate_each_is_told_what_is_wrong) {
    mandate in_force;
    in_force.extend_to(coordination::time_point::max());
    stage running{
        {.access = policy(1, {{.identity = "*", .locks = {"db/*"}}}), .mandate = &in_force}};
    const posix::descriptor strange = running.connect();
    send(strange, std::array{std::byte{0x7f}});
    EXPECT_EQ(next(strange), "ERROR 19");
    EXPECT_EQ(next(claim(running, "n")), denied);
    EXPECT_EQ(next(claim(running, "db/1")), "ACQUIRED");
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
