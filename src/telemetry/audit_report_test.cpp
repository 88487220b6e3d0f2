#include "telemetry/audit_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr std::int64_t begin_ms = 1'772'355'600'000;  // 2026-03-01T09:00:00Z

wall_time at(int second) {
    return wall_time{milliseconds{begin_ms}} + std::chrono::seconds{second};
}

std::string line(int second, std::string_view lock, const audit_event& event,
                 std::string_view address = "10.0.0.7:50123", std::string_view identity = {}) {
    std::string out;
    append_audit_line(out, audit_record{.time = at(second),
                                        .lock = lock,
                                        .identity = identity,
                                        .remote_addr = address,
                                        .event = event});
    out.pop_back();
    return out;
}

std::string granted(int second, std::string_view lock, std::uint64_t token, milliseconds wait = {},
                    std::string_view address = "10.0.0.7:50123") {
    return line(second, lock, audit_granted{.token = {token}, .wait = wait}, address);
}

std::string released(int second, std::string_view lock, std::uint64_t token, milliseconds held,
                     std::string_view reason = "graceful") {
    return line(second, lock, audit_released{.token = {token}, .held = held, .reason = reason});
}

json report_of(audit_report made, const std::vector<std::string>& lines) {
    for (const std::string& each : lines) {
        EXPECT_TRUE(made.take(each)) << each;
    }
    return json::parse(made.to_json());
}

template <class... Lines>
json report(audit_report made, const Lines&... lines) {
    return report_of(std::move(made), {lines...});
}

// [from, to, end, waited] of each ownership, seconds since the beginning.
json ownerships(const json& lock) {
    json out = json::array();
    for (const json& each : lock["ownerships"]) {
        const auto second = [](const json& ms) {
            return ms.is_null() ? ms : json((ms.get<std::int64_t>() - begin_ms) / 1000);
        };
        out.push_back({second(each[0]), second(each[1]), each[2], each[3]});
    }
    return out;
}

TEST(audit_report, figures_are_those_of_stats) {
    audit_stats stats;
    audit_report made;
    for (int turn = 0; turn < 200; ++turn) {
        const auto token = static_cast<std::uint64_t>(turn) + 1;
        const std::string lock = turn % 3 == 0 ? "a" : "b";
        const std::string_view reason = turn % 50 == 0 ? "expired" : "graceful";
        for (const std::string& each :
             {granted(turn, lock, token, milliseconds{turn * turn}),
              released(turn, lock, token, milliseconds{turn * 37}, reason),
              line(turn, "c", audit_denied{}), line(turn, "c", audit_kick_waiter{})}) {
            EXPECT_TRUE(stats.take(each));
            EXPECT_TRUE(made.take(each));
        }
    }
    EXPECT_EQ(made.records(), 800U);
    const json drawn = json::parse(made.to_json());
    const json summed = json::parse(stats.to_json());
    const auto same = [](const json& whole, const json& part) {
        for (const auto& [key, value] : part.items()) {
            if (!value.is_object()) {
                EXPECT_EQ(whole[key], value) << key;
                continue;
            }
            for (const auto& [name, number] : value.items()) {
                EXPECT_EQ(whole[key][name], number) << key << ' ' << name;
            }
        }
    };
    same(drawn["total"], summed["total"]);
    ASSERT_EQ(drawn["locks"].size(), 3U);
    for (std::size_t index = 0; index < 3; ++index) {
        same(drawn["locks"][index], summed["locks"][index]);
        std::uint64_t binned = 0;
        for (const json& bin : drawn["locks"][index]["wait_ms"]["bins"]) {
            binned += bin[1].get<std::uint64_t>();
        }
        EXPECT_EQ(binned, summed["locks"][index]["grants"]);
    }
}

TEST(audit_report, two_bins_for_each_doubling) {
    const auto bins_of = [](std::initializer_list<int> waits) {
        audit_report made;
        for (const int wait : waits) {
            EXPECT_TRUE(made.take(granted(0, "a", 1, milliseconds{wait})));
        }
        return json::parse(made.to_json())["total"]["wait_ms"]["bins"].dump();
    };
    EXPECT_EQ(bins_of({0, 1, 2, 3, 3}), "[[0,1],[1,1],[2,1],[3,2]]");
    EXPECT_EQ(bins_of({4, 5, 6, 7, 8, 11, 12, 15}), "[[4,2],[5,2],[6,2],[7,2]]");
    EXPECT_EQ(bins_of({1023, 1024, 1535, 1536}), "[[19,1],[20,2],[21,1]]");
}

TEST(audit_report, when_a_lock_was_owned) {
    const json found = report(audit_report{}, released(5, "a", 1, 3s, "expired"),  // from before
                              granted(6, "a", 2, 2s), released(9, "a", 2, 3s, "force"),
                              granted(10, "a", 3),   // no end: the server was killed
                              granted(20, "a", 4));  // and it goes on
    EXPECT_EQ(ownerships(found["locks"][0]).dump(),
              "[[2,5,1,-1],[6,9,3,2000],[10,20,-2,0],[20,null,-1,0]]");
    EXPECT_EQ(found["from"], begin_ms + 5000);
    EXPECT_EQ(found["to"], begin_ms + 20'000);
    EXPECT_EQ(found["locks"][0]["ownerships"][1][4], "2");
}

TEST(audit_report, an_absurd_hold_begins_in_1970) {
    const json found =
        report(audit_report{}, released(5, "a", 1, milliseconds{9'000'000'000'000'000}));
    EXPECT_EQ(found["locks"][0]["ownerships"][0][0], 0);
}

TEST(audit_report, only_some_locks) {
    const json found =
        report(audit_report{{.since = {},
                             .until = {},
                             .wants_lock = [](std::string_view lock) { return lock == "a"; }}},
               granted(1, "a", 1), granted(2, "b", 2), released(3, "b", 2, 1s));
    EXPECT_EQ(found["locks"].size(), 1U);
    EXPECT_EQ(found["records"], 1);
    EXPECT_EQ(found["total"]["grants"], 1);
}

TEST(audit_report, only_some_time) {
    audit_report made{{.since = at(10), .until = at(20), .wants_lock = {}}};
    const json found =
        report(std::move(made), granted(1, "over", 1, 5s), granted(2, "into", 2),
               granted(3, "before", 3), released(4, "before", 3, 1s), released(10, "into", 2, 8s),
               granted(19, "out", 4), line(19, "no", audit_denied{}), released(20, "out", 4, 1s),
               released(21, "over", 1, 20s), granted(22, "late", 5));
    EXPECT_EQ(found["records"], 3);
    EXPECT_EQ(found["total"]["grants"], 1);
    EXPECT_EQ(found["from"], begin_ms + 10'000);
    EXPECT_EQ(found["to"], begin_ms + 20'000);
    std::map<std::string, std::string> all;
    for (const json& lock : found["locks"]) {
        all[lock["lock"]] = ownerships(lock).dump();
    }
    EXPECT_EQ(all, (std::map<std::string, std::string>{{"into", "[[2,10,0,0]]"},
                                                       {"no", "[]"},
                                                       {"out", "[[19,null,-1,0]]"},
                                                       {"over", "[[1,null,-1,5000]]"}}));
}

// Who owned a lock when the log ends may have lost it since.
TEST(audit_report, a_time_after_the_log_is_told_nothing_of) {
    const auto since = audit_report_filter{.since = at(10), .until = {}, .wants_lock = {}};
    const json after = report(audit_report{since}, granted(1, "a", 1));
    EXPECT_EQ(after["locks"].size(), 0U);
    EXPECT_FALSE(after.contains("from"));

    const auto between = audit_report_filter{.since = at(10), .until = at(20), .wants_lock = {}};
    const json amidst =
        report(audit_report{between}, granted(1, "a", 1), released(30, "a", 1, 29s));
    EXPECT_EQ(amidst["records"], 0);
    EXPECT_EQ(ownerships(amidst["locks"][0]).dump(), "[[1,null,-1,0]]");
    EXPECT_EQ(amidst["from"], begin_ms + 10'000);
    EXPECT_EQ(amidst["to"], begin_ms + 20'000);
}

TEST(audit_report, files_in_the_wrong_order_are_noticed) {
    EXPECT_EQ(report(audit_report{}, granted(5, "a", 7), released(6, "a", 7, 1s),
                     granted(1, "a", 3), released(2, "a", 3, 1s))["disordered"],
              1);
    EXPECT_EQ(report(audit_report{}, granted(5, "a", 7), granted(5, "a", 7))["disordered"], 1);
    EXPECT_EQ(report(audit_report{}, granted(5, "a", 7), granted(4, "b", 3),
                     granted(6, "a", 8))["disordered"],
              0);
}

TEST(audit_report, nothing_is_left_out_in_silence) {
    const audit_report_limits few{
        .locks_max = 2, .ownerships_max = 3, .owners_max = 2, .incidents_max = 2};
    audit_report made{{}, few};
    for (int turn = 0; turn < 5; ++turn) {
        const auto token = static_cast<std::uint64_t>(turn) + 1;
        const std::string address = "10.0.0." + std::to_string(turn) + ":1";
        EXPECT_TRUE(made.take(granted(turn, "a", token, 0s, address)));
        EXPECT_TRUE(made.take(released(turn, "a", token, 1s, "expired")));
    }
    const json found = report(std::move(made), granted(6, "b", 7), granted(6, "c", 8),
                              granted(7, "d", 9), released(8, "d", 9, 1s));
    EXPECT_EQ(found["locks"].size(), 2U);
    EXPECT_EQ(found["others"]["records"], 3);
    EXPECT_EQ(found["others"]["grants"], 2);
    EXPECT_EQ(found["total"]["grants"], 8);
    EXPECT_EQ(found["locks"][0]["forgotten"], 2);
    EXPECT_EQ(found["locks"][0]["ownerships"].size(), 3U);
    EXPECT_EQ(found["locks"][0]["ownerships"][2][5], 0);  // the owners that have no name
    EXPECT_EQ(found["owners"], (json{"others", "10.0.0.0", "10.0.0.1"}));
    EXPECT_EQ(found["owners_full"], 1);
    EXPECT_EQ(found["incidents"].size(), 2U);
    EXPECT_EQ(found["incidents_forgotten"], 3);
}

TEST(audit_report, what_went_wrong) {
    std::string gap;
    append_audit_line(gap, audit_gap{.time = at(5), .lost = 7});
    gap.pop_back();
    audit_report made;
    EXPECT_FALSE(made.take("{\"half"));
    const json found =
        report(std::move(made), released(1, "a", 1, 2s, "io_timeout"), released(2, "a", 2, 1s),
               line(3, "b", audit_denied{}, "h:1", "mallory"), line(4, "b", audit_kick_waiter{}),
               line(4, "b", audit_force_release{.token = {1}}), gap);
    EXPECT_EQ(found["unreadable"], 1);
    EXPECT_EQ(found["lost"], 7);
    ASSERT_EQ(found["incidents"].size(), 4U);
    EXPECT_EQ(found["incidents"][0],
              (json{begin_ms + 1000, "io_timeout", "a", "10.0.0.7:50123", 2000}));
    EXPECT_EQ(found["incidents"][1], (json{begin_ms + 3000, "denied", "b", "mallory", 0}));
    EXPECT_EQ(found["incidents"][2][1], "kicked");
    EXPECT_EQ(found["incidents"][3], (json{begin_ms + 5000, "gap", "", "", 7}));
}

TEST(audit_report, owners_are_told_apart_by_where_they_are) {
    const json found = report(
        audit_report{}, granted(1, "a", 1, 0s, "10.0.0.7:1"), granted(2, "b", 2, 0s, "10.0.0.7:2"),
        granted(3, "c", 3, 0s, "[2001:db8::1]:3"), granted(4, "d", 4, 0s, "unix:pid=7,uid=1000"),
        line(5, "e", audit_granted{.token = {5}}, "10.0.0.7:1", std::string(200, 'x') + "é"));
    EXPECT_EQ(found["owners"], (json{"others", "10.0.0.7", "[2001:db8::1]", "unix:uid=1000",
                                     std::string(128, 'x') + "…"}));
    EXPECT_EQ(report(audit_report{}, line(5, "e", audit_granted{.token = {5}}, "h:1",
                                          std::string(127, 'x') + "éé"))["owners"][1],
              std::string(127, 'x') + "…");
    EXPECT_EQ(report(audit_report{{}, {.owner_bytes_max = 1}},
                     line(5, "e", audit_granted{.token = {5}}, "h:1", "émile"))["owners"][1],
              "…");
}

TEST(audit_report, owners_whose_address_is_unlike_others) {
    const json found = report(audit_report{}, granted(1, "a", 1, 0s, "unix:pid=7"),
                              granted(2, "b", 2, 0s, "somewhere"), granted(3, "c", 3, 0s, ":9"));
    EXPECT_EQ(found["owners"], (json{"others", "unix:7", "somewhere", ":9"}));
}

// Of what was owned before the time only so much is kept as there is room for locks.
TEST(audit_report, owners_of_before_are_bounded) {
    audit_report made{{.since = at(10), .until = at(20), .wants_lock = {}}, {.locks_max = 1}};
    const json found =
        report(std::move(made), granted(1, "a", 1), granted(2, "b", 2), granted(3, "a", 3),
               line(3, "b", audit_denied{}), released(4, "c", 9, 1s), granted(25, "late", 4));
    ASSERT_EQ(found["locks"].size(), 1U);
    EXPECT_EQ(ownerships(found["locks"][0]).dump(), "[[3,null,-1,0]]");
}

TEST(audit_report, what_comes_after_the_time_says_nothing_about_it) {
    audit_report made{{.since = {}, .until = at(20), .wants_lock = {}}};
    const json found = report(std::move(made), granted(1, "a", 1), granted(25, "b", 2));
    ASSERT_EQ(found["locks"].size(), 1U);
    EXPECT_EQ(found["locks"][0]["lock"], "a");
}

TEST(audit_report, an_end_of_another_token_is_an_ownership_of_its_own) {
    const json found =
        report(audit_report{}, granted(1, "a", 1), released(9, "a", 2, 3s, "expired"));
    EXPECT_EQ(ownerships(found["locks"][0]).dump(), "[[1,9,-2,0],[6,9,1,-1]]");
}

TEST(audit_report, gaps_outside_the_time_do_not_count) {
    std::string gap;
    append_audit_line(gap, audit_gap{.time = at(1), .lost = 7});
    gap.pop_back();
    audit_report made{{.since = at(10), .until = {}, .wants_lock = {}}};
    EXPECT_TRUE(made.take(gap));
    EXPECT_FALSE(made.take("no record"));
    EXPECT_TRUE(made.take(granted(11, "a", 2)));
    EXPECT_TRUE(made.take(granted(12, "a", 1)));
    EXPECT_EQ(json::parse(made.to_json())["lost"], 0);
    EXPECT_EQ(made.records(), 2U);
    EXPECT_EQ(made.unreadable(), 1U);
    EXPECT_EQ(made.disordered(), 1U);
}

TEST(audit_report, no_name_ends_a_script) {
    const std::string name = "</script><!--&\u2028\"";
    audit_report made;
    EXPECT_TRUE(made.take(line(1, name, audit_denied{}, "a:1", "<script>")));
    const std::string text = made.to_json();
    for (const std::string_view bad : {"<", ">", "&", "\u2028", "\n"}) {
        EXPECT_EQ(text.find(bad), std::string::npos) << bad;
    }
    EXPECT_EQ(json::parse(text)["locks"][0]["lock"], name);
}

TEST(audit_report, a_lock_that_no_server_can_have_is_no_record) {
    audit_report made;
    EXPECT_FALSE(made.take(line(1, std::string(256, 'x'), audit_denied{})));
    const json found = json::parse(made.to_json());
    EXPECT_EQ(found["unreadable"], 1);
    EXPECT_FALSE(found.contains("from"));
}

}  // namespace
}  // namespace monolock::telemetry
