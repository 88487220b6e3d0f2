#include "cli/admin/admin_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace monolock::cli {
namespace {

using words = std::vector<const char*>;

admin_arguments parsed(const words& given, const std::map<std::string, const char*>& variables = {
                                               {"MONOLOCK_ADMIN", "127.0.0.1:9091"}}) {
    return parse_admin_arguments(given, [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second;
    });
}

std::string why_not(const words& given, const std::map<std::string, const char*>& variables = {
                                            {"MONOLOCK_ADMIN", "127.0.0.1:9091"}}) {
    const auto out = parsed(given, variables);
    const auto* const wrong = std::get_if<config::diagnostic>(&out);
    return wrong != nullptr ? wrong->text : "it parses";
}

TEST(admin_arguments, commands_are_known) {
    for (const char* const verb : {"locks", "show", "release", "kick", "info"}) {
        EXPECT_TRUE(is_admin_command(verb));
    }
    EXPECT_FALSE(is_admin_command("run"));
    EXPECT_FALSE(is_admin_command("lock"));
}

TEST(admin_arguments, locks) {
    const auto plain = std::get<locks_options>(parsed({"locks"}));
    EXPECT_EQ(plain.admin, "127.0.0.1:9091");
    EXPECT_FALSE(plain.json || plain.watch || plain.match);
    const auto all = std::get<locks_options>(
        parsed({"locks", "--match", "a*", "--watch", "--json", "--admin=unix:/a"}));
    EXPECT_TRUE(all.json && all.watch);
    EXPECT_EQ(all.match, "a*");
    EXPECT_EQ(all.admin, "unix:/a");
}

TEST(admin_arguments, options_stand_before_and_behind_the_name) {
    for (const words& spelling : {words{"release", "n", "--token", "7", "--yes"},
                                  words{"release", "--token=7", "n", "--yes"},
                                  words{"release", "--yes", "--token", "7", "n"}}) {
        const auto release = std::get<release_options>(parsed(spelling));
        EXPECT_EQ(release.name, "n");
        EXPECT_EQ(release.token, 7U);
        EXPECT_TRUE(release.yes);
    }
    EXPECT_EQ(std::get<show_options>(parsed({"show", "--json", "--", "--name"})).name, "--name");
    const auto kick = std::get<kick_options>(parsed({"kick", "n", "--yes", "unix:pid=1,uid=0"}));
    EXPECT_EQ(kick.who, "unix:pid=1,uid=0");
}

TEST(admin_arguments, what_is_wrong) {
    EXPECT_EQ(why_not({"locks"}, {}), "no admin address: --admin, or MONOLOCK_ADMIN");
    EXPECT_EQ(why_not({"locks"}, {{"MONOLOCK_ADMIN", ""}}),
              "no admin address: --admin, or MONOLOCK_ADMIN");
    EXPECT_EQ(why_not({"locks"}, {{"MONOLOCK_ADMIN", "host"}}),
              "MONOLOCK_ADMIN \"host\": no port; write host:port, :port, [::1]:port or unix:/path");
    EXPECT_EQ(why_not({"info", "--admin", "h:0"}),
              "--admin \"h:0\": nothing can be reached at port 0");
    EXPECT_EQ(why_not({"info", "x"}), "stray argument \"x\"");
    EXPECT_EQ(why_not({"locks", "--match", "\xff"}),
              "--match \"\\xff\": not valid UTF-8, which every lock name is");
    EXPECT_EQ(why_not({"show"}), "no lock name");
    EXPECT_EQ(why_not({"show", ""}), "NAME \"\": empty lock name");
    EXPECT_EQ(why_not({"show", "a", "b"}), "stray argument \"b\"");
    EXPECT_EQ(why_not({"show", "a", "--yes"}), "unknown flag \"--yes\"");
    EXPECT_EQ(why_not({"kick", "n"}),
              "no waiter; write: kick NAME ADDR, with an address or an id from show");
    for (const char* const token : {"", "0", "-1", "x", "1x", "18446744073709551616"}) {
        EXPECT_THAT(why_not({"release", "n", "--token", token}),
                    testing::HasSubstr("not a fencing token"));
    }
}

TEST(admin_arguments, help_is_the_same_everywhere) {
    for (const char* const verb : {"locks", "show", "release", "kick", "info"}) {
        EXPECT_EQ(std::get<help>(parsed({verb, "--help"}, {})).text, admin_help().text);
    }
    for (const char* const word :
         {"--match", "--watch", "--token", "--yes", "--admin", "--json", "75"}) {
        EXPECT_THAT(admin_help().text, testing::HasSubstr(word));
    }
}

}  // namespace
}  // namespace monolock::cli
