#include "cli/report_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace monolock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const audit_report_options& told, const std::string& line = {}) {
    telemetry::audit_report report;
    if (!line.empty()) {
        EXPECT_TRUE(report.take(line));
    }
    return report_page(report, told, telemetry::wall_time{std::chrono::seconds{1}}, "1.2.3");
}

// What stands between two texts, which stand in the page once.
std::string between(const std::string& page, const std::string& left, const std::string& right) {
    const std::size_t begin = page.find(left);
    EXPECT_NE(begin, std::string::npos) << left;
    EXPECT_EQ(page.find(left, begin + 1), std::string::npos) << left;
    return page.substr(begin + left.size(), page.find(right, begin) - begin - left.size());
}

nlohmann::json data_in(const std::string& page) {
    return nlohmann::json::parse(
        between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

audit_report_options some() {
    return {.output = "-", .lock = {}, .since = {}, .until = {}, .files = {"a.log", "-"}};
}

TEST(report_page, is_whole_and_asks_for_nothing) {
    const std::string page = page_of(some());
    EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
    EXPECT_THAT(page, testing::EndsWith("</html>\n"));
    EXPECT_THAT(page, Not(HasSubstr("{{")));
    for (const char* const outside : {"src=", "href=", "@import", "url(", "fetch(", "import "}) {
        EXPECT_THAT(page, Not(HasSubstr(outside)));
    }
    const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
    EXPECT_THAT(policy, testing::StartsWith("default-src 'none'; script-src 'sha256-"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(report_page, says_what_was_asked_for) {
    audit_report_options told = some();
    told.lock = "a*";
    told.since = telemetry::wall_time{std::chrono::seconds{5}};
    const nlohmann::json data = data_in(page_of(told));
    EXPECT_EQ(data["version"], "1.2.3");
    EXPECT_EQ(data["made"], 1000);
    EXPECT_EQ(data["files"], (nlohmann::json{"a.log", "standard input"}));
    EXPECT_EQ(data["filter"],
              (nlohmann::json{{"lock", "a*"}, {"since", 5000}, {"until", nullptr}}));
    EXPECT_EQ(data["records"], 0);
}

TEST(report_page, hostile_names_are_data) {
    const std::string name = "</script><script>alert(1)</script><!-- {{script}} {{data}}";
    audit_report_options told = some();
    told.files = {name};
    told.lock = name;
    std::string line;
    telemetry::append_audit_line(line, telemetry::audit_record{.time = {},
                                                               .lock = name,
                                                               .identity = name,
                                                               .remote_addr = name,
                                                               .event = telemetry::audit_denied{}});
    line.pop_back();
    const std::string page = page_of(told, line);
    EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
    const nlohmann::json data = data_in(page);
    EXPECT_EQ(data["files"][0], name);
    EXPECT_EQ(data["filter"]["lock"], name);
    EXPECT_EQ(data["locks"][0]["lock"], name);
    EXPECT_EQ(data["incidents"][0][3], name);
    EXPECT_EQ(page.size() - page.rfind("</html>"), 8U);
}

}  // namespace
}  // namespace monolock::cli
