#include "telemetry/audit_stats.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

std::string line(std::string_view lock, audit_event event) {
    std::string out;
    append_audit_line(
        out, audit_record{
                 .time = {}, .lock = lock, .identity = {}, .remote_addr = "a:1", .event = event});
    out.pop_back();
    return out;
}

audit_stats some() {
    audit_stats stats;
    for (int wait = 1; wait <= 20; ++wait) {
        EXPECT_TRUE(stats.take(
            line("a", audit_granted{.token = {1}, .wait = std::chrono::milliseconds{wait}})));
        EXPECT_TRUE(
            stats.take(line("a", audit_released{.token = {1}, .held = 1s, .reason = "graceful"})));
    }
    EXPECT_TRUE(stats.take(line("b\n", audit_granted{.token = {1}, .wait = 7ms})));
    EXPECT_TRUE(stats.take(line("b\n", audit_force_release{.token = {1}})));
    EXPECT_TRUE(
        stats.take(line("b\n", audit_released{.token = {1}, .held = 3ms, .reason = "force"})));
    EXPECT_TRUE(stats.take(line("b\n", audit_denied{})));
    EXPECT_TRUE(stats.take(line("b\n", audit_kick_waiter{})));
    std::string gap;
    append_audit_line(gap, audit_gap{.time = {}, .lost = 5});
    gap.pop_back();
    EXPECT_TRUE(stats.take(gap));
    EXPECT_FALSE(stats.take("{\"half"));
    return stats;
}

TEST(audit_stats, by_lock_and_in_all) {
    const audit_stats stats = some();
    ASSERT_EQ(stats.locks().size(), 2U);
    const audit_lock_stats& a = stats.locks().at("a");
    EXPECT_EQ(a.grants, 20U);
    EXPECT_EQ(a.ends[0], 20U);
    EXPECT_EQ(a.waited.percentile(0.5), 10ms);
    EXPECT_EQ(a.waited.percentile(0.95), 19ms);
    EXPECT_EQ(a.waited.largest(), 20ms);
    EXPECT_EQ(a.held.percentile(0.5), 1s);
    const audit_lock_stats& b = stats.locks().at("b\n");
    EXPECT_EQ(b.ends[3], 1U);
    EXPECT_EQ(b.denied, 1U);
    EXPECT_EQ(b.kicked, 1U);
    const audit_lock_stats total = stats.total();
    EXPECT_EQ(total.grants, 21U);
    EXPECT_EQ(total.waited.count(), 21U);
    EXPECT_EQ(stats.lost(), 5U);
    EXPECT_EQ(stats.unreadable(), 1U);
}

TEST(audit_stats, as_json) {
    const auto json = nlohmann::json::parse(some().to_json());
    ASSERT_EQ(json.at("locks").size(), 2U);
    const auto& b = json.at("locks").at(1);
    EXPECT_EQ(b.at("lock"), "b\n");
    EXPECT_EQ(b.at("grants"), 1);
    EXPECT_EQ(b.at("force"), 1);
    EXPECT_EQ(b.at("wait_ms").at("p99"), 7);
    EXPECT_EQ(b.at("held_ms").at("max"), 3);
    EXPECT_EQ(json.at("total").at("graceful"), 20);
    EXPECT_EQ(json.at("lost"), 5);
    EXPECT_EQ(json.at("unreadable"), 1);
    EXPECT_EQ(nlohmann::json::parse(audit_stats{}.to_json()).at("locks").size(), 0U);
}

}  // namespace
}  // namespace monolock::telemetry
