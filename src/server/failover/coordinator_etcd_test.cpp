#include "server/failover/coordinator.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/etcd_driver.hpp"
#include "support/etcd_process.hpp"
#include "support/shard_client.hpp"
#include "support/shard_stage.hpp"

// The coordinator between a true etcd and a shard.
namespace monolock::server {
namespace {

using namespace std::chrono_literals;
using test::claim;
using test::etcd_driver;
using test::etcd_process;
using test::next;

// Renewals are so far apart that nothing a test sees comes from one.
constexpr std::chrono::seconds ttl{60};
constexpr std::chrono::milliseconds longest_before{100};

class coordinator_etcd : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (etcd_process::is_installed()) {
            store = std::make_unique<etcd_process>();
        }
    }
    static void TearDownTestSuite() { store.reset(); }

    void SetUp() override {
        if (!store) {
            GTEST_SKIP() << "there is no etcd on the PATH (Debian: etcd-server)";
        }
        prefix_ =
            "/" + std::string{testing::UnitTest::GetInstance()->current_test_info()->name()} + "/";
    }

    // The shard may ask the coordinator until it is joined.
    ~coordinator_etcd() override { stage_.at(0).stop_and_join(); }

    [[nodiscard]] etcd::gateway_options etcd_options() const {
        return {.endpoints = {test::loopback(store->port())},
                .prefix = prefix_,
                .patience = 10s,
                .watch_silence_max = ttl};
    }

    // Somebody was active and resigned: so who comes next need not wait.
    void resign_before() const {
        etcd_driver before{etcd_options()};
        const auto lease =
            before.expect<coordination::lease_granted>(coordination::grant_lease{ttl});
        const auto won = before.expect<coordination::campaigned>(
            coordination::campaign{lease.lease, {.name = "before", .ttl = ttl}});
        ASSERT_TRUE(won.won);
        const coordination::state_record state{.ceiling = 1000,
                                               .longest_lease = longest_before,
                                               .name = "before",
                                               .ttl = ttl,
                                               .written_in = won.at,
                                               .sequence = 1,
                                               .resigned = true};
        ASSERT_TRUE(
            before.expect<coordination::resigned>(coordination::resign{won.at, won.at, state})
                .done);
    }

    void become_active(coordination::grant_delay_rule delay) {
        resign_before();
        coordinator_.emplace(
            coordinator::settings{.role = {.name = "this", .ttl = ttl, .grant_delay = delay},
                                  .etcd = etcd_options()},
            stage_.surroundings(), mandate_,
            role_orders{.open = [this] { opened_ = true; },
                        .step_down = [this] { stepped_down_ = true; },
                        .retired = [this] { retired_ = true; }});
        coordinator_->start();
        wait_for([this] { return opened_.load(); });
    }

    // What the next server finds.
    [[nodiscard]] coordination::campaigned next_campaign() const {
        etcd_driver after{etcd_options()};
        const auto lease =
            after.expect<coordination::lease_granted>(coordination::grant_lease{ttl});
        return after.expect<coordination::campaigned>(
            coordination::campaign{lease.lease, {.name = "after", .ttl = ttl}});
    }

    template <class Condition>
    static void wait_for(Condition holds) {
        const auto until = std::chrono::steady_clock::now() + etcd_driver::limit;
        while (!holds() && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(1ms);
        }
        ASSERT_TRUE(holds());
    }

    static inline std::unique_ptr<etcd_process> store;

    std::string prefix_;
    mandate mandate_;
    test::shard_stage stage_{{.mandate = &mandate_}};
    std::atomic<bool> opened_ = false;
    std::atomic<bool> stepped_down_ = false;
    std::atomic<bool> retired_ = false;
    std::optional<coordinator> coordinator_;
};

// A client that does not wait in a queue gives up at WAITING.
TEST_F(coordinator_etcd, with_a_fixed_delay_no_lease_has_to_be_recorded_before_a_grant) {
    become_active({.fixed = 0ms});
    EXPECT_EQ(next(claim(stage_, "free", 50'000)), "ACQUIRED");
}

TEST_F(coordinator_etcd, with_an_automatic_delay_a_longer_lease_is_recorded_first) {
    become_active({.fixed = {}});
    wait_for([this] { return !coordinator_->status().delays_grants; });
    EXPECT_EQ(next(claim(stage_, "covered", longest_before.count())), "ACQUIRED");
    const posix::descriptor longer = claim(stage_, "longer", 50'000);
    EXPECT_EQ(next(longer), "WAITING");
    EXPECT_EQ(next(longer), "ACQUIRED");
}

// As in the moment before a renewal's answer extends it. The next renewal is a quarter of a minute
// away, and so is the next survey of leases.
TEST_F(coordinator_etcd, a_promotion_that_missed_the_mandate_is_tried_again) {
    become_active({.fixed = 0ms});
    posix::descriptor owner = claim(stage_, "n");
    ASSERT_EQ(next(owner), "ACQUIRED");
    const posix::descriptor waiter = claim(stage_, "n");
    ASSERT_EQ(next(waiter), "WAITING");
    test::heartbeat(waiter);
    ASSERT_EQ(next(waiter), "WAITING") << "and the turn in which it was admitted is over";
    mandate_.end();
    owner.reset();
    EXPECT_EQ(next(waiter), "ACQUIRED");
}

TEST_F(coordinator_etcd, resigns_when_its_sessions_have_ended) {
    become_active({.fixed = 0ms});
    EXPECT_EQ(next(claim(stage_, "n")), "ACQUIRED");
    coordinator_->shut_down();
    wait_for([this] { return stepped_down_.load(); });
    EXPECT_EQ(next(claim(stage_, "n")), "ERROR 1") << "its mandate is over";
    const auto too_early = next_campaign();
    ASSERT_TRUE(too_early.active) << "it keeps the key until all sessions have ended";
    EXPECT_EQ(too_early.active->value.name, "this");
    coordinator_->sessions_ended();
    wait_for([this] { return retired_.load(); });
    const auto after = next_campaign();
    ASSERT_TRUE(after.won && after.state);
    EXPECT_TRUE(after.state->resigned);
    EXPECT_EQ(after.state->ceiling, stage_.surroundings().tokens.last() + 1);
}

TEST_F(coordinator_etcd, does_not_resign_for_a_shard_that_has_stalled) {
    become_active({.fixed = 0ms});
    EXPECT_EQ(next(claim(stage_, "n")), "ACQUIRED");
    coordinator_->shut_down();
    wait_for([this] { return stepped_down_.load(); });
    coordinator_->sessions_abandoned();
    wait_for([this] { return retired_.load(); });
    const auto after = next_campaign();
    ASSERT_TRUE(after.won && after.state) << "the key is gone with its lease";
    EXPECT_FALSE(after.state->resigned);
    EXPECT_GT(after.state->ceiling, stage_.surroundings().tokens.last() + 1);
}

}  // namespace
}  // namespace monolock::server
