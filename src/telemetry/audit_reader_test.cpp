#include "telemetry/audit_reader.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/session.hpp"

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

constexpr wall_time noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + 12h + 250ms};

const std::string granted =
    R"({"time":"2026-03-01T12:00:00.250Z","event":"granted","lock":"a","identity":"i",)"
    R"("remote_addr":"192.0.2.1:5","token":7,"wait_ms":12})";

std::vector<audit_record> records_of_each_kind() {
    const audit_record about{.time = noon,
                             .lock = "nightly",
                             .identity = "who",
                             .remote_addr = "[2001:db8::1]:5000",
                             .event = {}};
    std::vector<audit_record> out;
    for (const audit_event& event : std::initializer_list<audit_event>{
             audit_granted{.token = {1}, .wait = 0ms},
             audit_granted{.token = {~std::uint64_t{0}}, .wait = 1h},
             audit_released{.token = {7}, .held = 12ms, .reason = "graceful"},
             audit_released{.token = {7}, .held = 12ms, .reason = "expired"},
             audit_released{.token = {7}, .held = 12ms, .reason = "io_timeout"},
             audit_released{.token = {7}, .held = 12ms, .reason = "force"}, audit_denied{},
             audit_force_release{.token = {7}}, audit_kick_waiter{}}) {
        out.push_back(about);
        out.back().event = event;
    }
    return out;
}

std::string why_not(std::string_view line) {
    audit_reader reader;
    const audit_line read = reader.read(line);
    const auto* const wrong = std::get_if<audit_malformed>(&read);
    return wrong != nullptr ? wrong->why : "it is a record";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    return text.replace(text.find(from), from.size(), to);
}

TEST(audit_reader, reads_what_is_written) {
    audit_reader reader;
    for (const audit_record& record : records_of_each_kind()) {
        std::string line;
        append_audit_line(line, record);
        line.pop_back();
        const audit_line read = reader.read(line);
        ASSERT_TRUE(std::holds_alternative<audit_record>(read)) << line << why_not(line);
        EXPECT_EQ(std::get<audit_record>(read), record) << line;
    }
    std::string line;
    append_audit_line(line, audit_gap{.time = noon, .lost = 3});
    line.pop_back();
    EXPECT_EQ(std::get<audit_gap>(reader.read(line)), (audit_gap{.time = noon, .lost = 3}));
}

TEST(audit_reader, knows_the_reasons_that_the_server_gives) {
    for (const auto reason : {core::end_reason::graceful, core::end_reason::expired,
                              core::end_reason::io_timeout, core::end_reason::force}) {
        std::string line;
        append_audit_line(
            line, audit_record{.time = noon,
                               .lock = "a",
                               .identity = {},
                               .remote_addr = {},
                               .event = audit_released{
                                   .token = {1}, .held = 0ms, .reason = core::to_string(reason)}});
        line.pop_back();
        EXPECT_EQ(why_not(line), "it is a record");
    }
}

TEST(audit_reader, gives_names_back_unchanged) {
    audit_reader reader;
    std::vector<std::string> names{"",     "\"",    "\\",           "\\u0041",           "a\nb",
                                   "\x7f", "üäö€😀", "\xe2\x80\xa8", std::string(1, '\0')};
    for (char control = 0; control < 0x20; ++control) {
        names.push_back(std::string{"x"} + control + "y");
    }
    for (const std::string& name : names) {
        std::string line;
        append_audit_line(line, audit_record{.time = noon,
                                             .lock = name,
                                             .identity = name,
                                             .remote_addr = name,
                                             .event = audit_denied{}});
        line.pop_back();
        const audit_line read = reader.read(line);
        ASSERT_TRUE(std::holds_alternative<audit_record>(read)) << line;
        EXPECT_EQ(std::get<audit_record>(read).lock, name);
        EXPECT_EQ(std::get<audit_record>(read).identity, name);
        EXPECT_EQ(std::get<audit_record>(read).remote_addr, name);
    }
}

TEST(audit_reader, takes_any_escape_that_json_has) {
    audit_reader reader;
    for (const char* const text :
         {R"(\/\b\f\n\r\t\"\\)", R"(\u00fc\u20AC\u0000)", R"(\ud83d\ude00)"}) {
        const std::string line = replaced(granted, R"("a")", std::string{"\""} + text + "\"");
        const audit_line read = reader.read(line);
        ASSERT_TRUE(std::holds_alternative<audit_record>(read)) << line;
        EXPECT_EQ(std::get<audit_record>(read).lock, nlohmann::json::parse(line).at("lock"));
    }
}

TEST(audit_reader, no_name_is_not_text) {
    for (const char* const text :
         {R"(\ud83d)", R"(\ud83dx)", R"(\ude00)", R"(\ud83d\u0041)", R"(\ud83d\ue000)", R"(\x)",
          R"(\u12)", R"(\u12g4)", "\xff", "\xc0\x80", "\n", "\x01", R"(\)"}) {
        EXPECT_TRUE(why_not(replaced(granted, R"("a")", std::string{"\""} + text + "\""))
                        .starts_with("expected "))
            << text;
    }
}

TEST(audit_reader, a_line_cut_anywhere_is_no_record) {
    for (std::size_t size = 0; size < granted.size(); ++size) {
        EXPECT_TRUE(why_not(granted.substr(0, size)).starts_with("expected ")) << size;
    }
    const std::string escapes = replaced(granted, R"("a")", R"("\n\u00fc\ud83d\ude00")");
    for (std::size_t size = 0; size < escapes.size(); ++size) {
        EXPECT_TRUE(why_not(escapes.substr(0, size)).starts_with("expected ")) << size;
    }
    EXPECT_EQ(why_not(escapes), "it is a record");
    EXPECT_EQ(why_not(granted), "it is a record");
    EXPECT_EQ(why_not(granted + " "),
              "expected nothing more at column " + std::to_string(granted.size() + 1));
}

TEST(audit_reader, says_what_it_expected_and_where) {
    EXPECT_EQ(why_not(""), "expected \"time\" at column 1");
    EXPECT_EQ(why_not("{}"), "expected \"time\" at column 1");
    EXPECT_EQ(why_not(replaced(granted, "2026-03-01", "2026-02-29")),
              "expected a time at column 10");
    EXPECT_EQ(why_not(replaced(granted, "T12:00", "T24:00")), "expected a time at column 10");
    EXPECT_EQ(why_not(replaced(granted, "00.250Z", "00.25Z")), "expected a time at column 10");
    EXPECT_EQ(why_not(replaced(granted, "2026", "2O26")), "expected a time at column 10");
    for (const char* const time :
         {"9999-03-01T12:00:00.250Z", "2262-01-01T12:00:00.250Z", "1969-12-31T12:00:00.250Z",
          "2026-00-01T12:00:00.250Z", "2026-13-01T12:00:00.250Z", "2026-03-00T12:00:00.250Z",
          "2026-03-32T12:00:00.250Z", "2026-03-01T12:60:00.250Z", "2026-03-01T12:00:60.250Z",
          "2026-03-01T12:00:00.2:0Z", "2026-03-01T12:00:00.2/0Z", "2026 03-01T12:00:00.250Z",
          "2026-03-01T12:00:00,250Z", "2026-03-01T12:00:00.250z"}) {
        EXPECT_EQ(why_not(replaced(granted, "2026-03-01T12:00:00.250Z", time)),
                  "expected a time at column 10")
            << time;
    }
    for (const char* const time : {"2261-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"}) {
        EXPECT_EQ(why_not(replaced(granted, "2026-03-01T12:00:00.250Z", time)), "it is a record");
    }
    EXPECT_EQ(why_not(replaced(granted, "\"granted\"", "\"grunted\"")),
              "expected an event at column 45");
    EXPECT_EQ(why_not(replaced(granted, ",\"identity\":\"i\"", "")),
              "expected \"identity\" at column 64");
    EXPECT_EQ(why_not(replaced(granted, "7,", "-7,")), "expected a token at column 116");
    EXPECT_EQ(why_not(replaced(granted, "7,", "07,")), "expected a token at column 116");
    EXPECT_EQ(why_not(replaced(granted, "7,", "7.0,")), "expected \"wait_ms\" at column 117");
    EXPECT_EQ(why_not(replaced(granted, "7,", "18446744073709551616,")),
              "expected a token at column 116");
    EXPECT_EQ(why_not(replaced(granted, "\"wait_ms\":12", "\"wait_ms\":")),
              "expected milliseconds at column 128");
    EXPECT_EQ(why_not(replaced(granted, "\"wait_ms\":12", "\"wait_ms\":9223372036854775808")),
              "expected milliseconds at column 128");
    EXPECT_EQ(why_not(replaced(granted, "12}", R"(12,"more":1})")),
              "expected the end of the record at column 130");
}

}  // namespace
}  // namespace monolock::telemetry
