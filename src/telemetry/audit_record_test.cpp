#include "telemetry/audit_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

constexpr wall_time noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + 12h + 250ms};

audit_record record_of(audit_event event) {
    return {.time = noon,
            .lock = "nightly",
            .identity = "worker-1",
            .remote_addr = "192.0.2.1:5000",
            .event = event};
}

std::string line_of(const auto& what) {
    std::string out;
    append_audit_line(out, what);
    return out;
}

// Each as the contract writes it: every key, in its order.
TEST(audit_record, lines) {
    const std::string who =
        R"("lock":"nightly","identity":"worker-1","remote_addr":"192.0.2.1:5000")";
    const std::string time = R"({"time":"2026-03-01T12:00:00.250Z","event":)";
    EXPECT_EQ(line_of(record_of(audit_granted{.token = {1'801'000'000'000'000}, .wait = 12ms})),
              time + R"("granted",)" + who + R"(,"token":1801000000000000,"wait_ms":12})" + "\n");
    EXPECT_EQ(
        line_of(record_of(audit_released{.token = {7}, .held = 90min, .reason = "io_timeout"})),
        time + R"("released",)" + who + R"(,"token":7,"held_ms":5400000,"reason":"io_timeout"})" +
            "\n");
    EXPECT_EQ(line_of(record_of(audit_denied{})), time + R"("denied",)" + who + "}\n");
    EXPECT_EQ(line_of(record_of(audit_force_release{.token = {7}})),
              time + R"("force_release",)" + who + R"(,"token":7})" + "\n");
    EXPECT_EQ(line_of(record_of(audit_kick_waiter{})), time + R"("kick_waiter",)" + who + "}\n");
    EXPECT_EQ(line_of(audit_gap{.time = noon, .lost = 3}),
              time + R"("audit_gap","lost":3})" + "\n");
}

TEST(audit_record, appends_and_leaves_what_was_there) {
    std::string out = "before\n";
    append_audit_line(out, audit_gap{.time = noon, .lost = 1});
    append_audit_line(out, audit_gap{.time = noon, .lost = 2});
    EXPECT_TRUE(out.starts_with("before\n{"));
    EXPECT_EQ(std::ranges::count(out, '\n'), 3);
}

// Case H10.
TEST(audit_record, whatever_the_names_a_line_parses_alone_and_gives_them_back) {
    std::vector<std::string> names{"\"",
                                   "\\",
                                   "\\u0041",
                                   "a\nb",
                                   "\x7f",
                                   "\xe2\x80\xa8",
                                   "\xe2\x80\xa9",
                                   "x\"}\n{\"event\":\"forged\"}",
                                   std::string(255, '\x01'),
                                   "üäö€😀"};
    for (char control = 0; control < 0x20; ++control) {
        names.push_back(std::string{"x"} + control + "y");
    }
    for (const std::string& name : names) {
        audit_record record = record_of(audit_denied{});
        record.lock = name;
        record.identity = name;
        const std::string line = line_of(record);
        EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
        EXPECT_TRUE(std::ranges::none_of(line.substr(0, line.size() - 1), [](char letter) {
            return static_cast<unsigned char>(letter) < 0x20 || letter == '\x7f';
        })) << line;
        EXPECT_EQ(line.find("\xe2\x80\xa8"), std::string::npos);
        const auto parsed = nlohmann::json::parse(line);
        EXPECT_EQ(parsed.at("lock"), name);
        EXPECT_EQ(parsed.at("identity"), name);
    }
}

}  // namespace
}  // namespace monolock::telemetry
