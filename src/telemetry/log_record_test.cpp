#include "telemetry/log_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

constexpr wall_time noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + 12h + 250ms};

std::string text_of(wall_time when) {
    std::string out;
    append_rfc3339(out, when);
    return out;
}

TEST(rfc3339, milliseconds_in_utc) {
    EXPECT_EQ(text_of(noon), "2026-03-01T12:00:00.250Z");
    EXPECT_EQ(text_of(wall_time{}), "1970-01-01T00:00:00.000Z");
}

TEST(rfc3339, rounds_down_and_knows_leap_days) {
    EXPECT_EQ(text_of(noon + 999us), "2026-03-01T12:00:00.250Z");
    EXPECT_EQ(text_of(wall_time{} - 1ms), "1969-12-31T23:59:59.999Z");
    EXPECT_EQ(text_of(wall_time{std::chrono::sys_days{std::chrono::year{2028} / 2 / 29}}),
              "2028-02-29T00:00:00.000Z");
}

TEST(log_record, text_line) {
    const std::array<log_field, 3> fields{
        {{"lock", "a b"}, {"token", std::uint64_t{7}}, {"age_ms", std::int64_t{-1}}}};
    std::string out = "kept ";
    format_text({.level = log_level::info, .message = "granted", .fields = fields}, noon, out);
    EXPECT_EQ(out,
              "kept time=2026-03-01T12:00:00.250Z level=info msg=\"granted\" lock=\"a b\" token=7 "
              "age_ms=-1\n");
}

TEST(log_record, json_line) {
    const std::array<log_field, 2> fields{
        {{"lock", "a\n\"b"}, {"token", std::numeric_limits<std::uint64_t>::max()}}};
    std::string out;
    format(log_format::json, {.level = log_level::warn, .message = "odd\\name", .fields = fields},
           noon, out);
    EXPECT_EQ(out, R"({"time":"2026-03-01T12:00:00.250Z","level":"warn","msg":"odd\\name",)"
                   R"("lock":"a\n\"b","token":18446744073709551615})"
                   "\n");
    const auto parsed = nlohmann::json::parse(out);
    EXPECT_EQ(parsed["lock"], "a\n\"b");
    EXPECT_EQ(parsed["token"], std::numeric_limits<std::uint64_t>::max());
}

TEST(log_record, no_value_makes_a_second_line) {
    const std::array<log_field, 1> fields{{{"reason", "x\ntime=2026 level=error msg=\"forged\""}}};
    for (const log_format how : {log_format::text, log_format::json}) {
        std::string out;
        format(how, {.message = "a\r\nb\u2028", .fields = fields}, noon, out);
        EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
        EXPECT_EQ(out.find('\r'), std::string::npos);
        EXPECT_EQ(out.back(), '\n');
    }
}

TEST(log_words, parse_is_the_inverse_of_to_string) {
    for (const log_level level :
         {log_level::debug, log_level::info, log_level::warn, log_level::error}) {
        EXPECT_EQ(parse_log_level(to_string(level)), level);
    }
    for (const log_format how : {log_format::text, log_format::json}) {
        EXPECT_EQ(parse_log_format(to_string(how)), how);
    }
    EXPECT_EQ(parse_log_level("INFO"), std::nullopt);
    EXPECT_EQ(parse_log_level(""), std::nullopt);
    EXPECT_EQ(parse_log_format("logfmt"), std::nullopt);
}

}  // namespace
}  // namespace monolock::telemetry
