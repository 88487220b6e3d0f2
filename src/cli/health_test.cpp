#include "cli/health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace monolock::cli {
namespace {

using ::testing::HasSubstr;
using words = std::vector<const char*>;
using variables = std::map<std::string, const char*>;

health_arguments parsed(const words& given, const variables& known = {}) {
    return parse_health_arguments(given, [&](const char* name) -> const char* {
        const auto found = known.find(name);
        return found == known.end() ? nullptr : found->second;
    });
}

std::string why_not(const words& given, const variables& known = {}) {
    const auto out = parsed(given, known);
    const auto* const wrong = std::get_if<config::diagnostic>(&out);
    return wrong != nullptr ? wrong->text : "it parses";
}

TEST(health_arguments, the_servers_own_variable_is_enough) {
    const variables server{{"MONOLOCK_OPS_LISTEN_ADDRESS", ":9090"}};
    const auto plain = std::get<health_options>(parsed({}, server));
    EXPECT_EQ(plain.ops, ":9090");
    EXPECT_FALSE(plain.ready);
    EXPECT_EQ(std::get<health_options>(parsed({"--ops", "unix:/o"}, server)).ops, "unix:/o");
    EXPECT_TRUE(std::get<health_options>(parsed({"--ready"}, server)).ready);
}

TEST(health_arguments, mistakes_are_named) {
    EXPECT_THAT(why_not({}), HasSubstr("MONOLOCK_OPS_LISTEN_ADDRESS"));
    EXPECT_THAT(why_not({"--ops", ":0"}), HasSubstr("port 0"));
    EXPECT_THAT(why_not({}, {{"MONOLOCK_OPS_LISTEN_ADDRESS", "nowhere"}}),
                HasSubstr("MONOLOCK_OPS_LISTEN_ADDRESS"));
    EXPECT_THAT(why_not({"--ops", ":9090", "now"}), HasSubstr(R"("now")"));
    EXPECT_THAT(why_not({"--json"}), HasSubstr("--json"));
}

TEST(health_arguments, help_has_options_and_statuses) {
    for (const words& spelling : {words{"-h"}, words{"--help"}}) {
        const std::string text = std::get<help>(parsed(spelling)).text;
        for (const char* const part : {"--ready", "--ops", " 0 ", " 1 ", " 69 ", " 70 "}) {
            EXPECT_THAT(text, HasSubstr(part));
        }
    }
}

}  // namespace
}  // namespace monolock::cli
