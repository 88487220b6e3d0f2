#include "cli/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using words = std::vector<const char*>;
using variables = std::map<std::string, const char*>;

arguments parse(const words& what, const variables& set = {}) {
    return parse_arguments(what, [&set](const char* name) -> const char* {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second;
    });
}

run_options run_of(words what, const variables& set = {}) {
    what.insert(what.begin(), "run");
    const auto out = parse(what, set);
    const auto* const wrong = std::get_if<config::diagnostic>(&out);
    EXPECT_TRUE(std::holds_alternative<run_options>(out)) << (wrong ? wrong->text : "help");
    return std::holds_alternative<run_options>(out) ? std::get<run_options>(out) : run_options{};
}

std::string why_not(const words& what, const variables& set = {}) {
    const auto out = parse(what, set);
    EXPECT_TRUE(std::holds_alternative<config::diagnostic>(out));
    std::string text = std::holds_alternative<config::diagnostic>(out)
                           ? std::get<config::diagnostic>(out).text
                           : "";
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
}

std::string help_of(const words& what) {
    const auto out = parse(what);
    EXPECT_TRUE(std::holds_alternative<help>(out));
    return std::holds_alternative<help>(out) ? std::get<help>(out).text : "";
}

TEST(arguments, defaults) {
    const run_options out = run_of({"nightly", "./import.sh"});
    EXPECT_EQ(out.lease, 10s);
    EXPECT_EQ(out.wait, std::nullopt);
    EXPECT_FALSE(out.retry);
    EXPECT_EQ(out.grace, 1500ms);
    EXPECT_EQ(out.conflict_exit_code, 75);
    EXPECT_EQ(out.server, ":7070");
    EXPECT_EQ(out.name, "nightly");
    EXPECT_THAT(out.command, ElementsAre("./import.sh"));
}

TEST(arguments, every_option) {
    const run_options out =
        run_of({"--lease", "4s", "--wait=3s", "--retry", "--grace", "1s", "--conflict-exit-code=9",
                "--server", "[::1]:1", "n", "--", "cmd", "-x"});
    EXPECT_EQ(out.lease, 4s);
    EXPECT_EQ(out.wait, 3s);
    EXPECT_TRUE(out.retry);
    EXPECT_EQ(out.grace, 1s);
    EXPECT_EQ(out.conflict_exit_code, 9);
    EXPECT_EQ(out.server, "[::1]:1");
    EXPECT_THAT(out.command, ElementsAre("cmd", "-x"));
}

TEST(arguments, options_end_at_the_name) {
    EXPECT_THAT(run_of({"n", "printf", "%s\\n", "a b", "-v", "$HOME", ""}).command,
                ElementsAre("printf", "%s\\n", "a b", "-v", "$HOME", ""));
    EXPECT_THAT(run_of({"n", "--", "--", "x"}).command, ElementsAre("--", "x"));
    EXPECT_THAT(run_of({"n", "cmd", "--", "--retry"}).command, ElementsAre("cmd", "--", "--retry"));
    EXPECT_THAT(run_of({"n", "cmd", "-h"}).command, ElementsAre("cmd", "-h"));
    EXPECT_EQ(run_of({"--", "--retry", "cmd"}).name, "--retry");
    EXPECT_EQ(run_of({" n\n", "cmd"}).name, " n\n");
}

TEST(arguments, waits) {
    EXPECT_EQ(run_of({"--wait", "0", "n", "c"}).wait, 0s);
    EXPECT_EQ(run_of({"--no-wait", "n", "c"}).wait, 0s);
    EXPECT_THAT(why_not({"run", "--wait", "3", "n", "c"}),
                HasSubstr(R"(--wait "3": a duration needs a unit, like 5s)"));
    EXPECT_THAT(why_not({"run", "--wait=-1s", "n", "c"}), HasSubstr("cannot be negative"));
}

TEST(arguments, leases) {
    EXPECT_EQ(run_of({"--lease=1ms", "n", "c"}).lease, 1ms);
    EXPECT_EQ(run_of({"--lease=4294967295ms", "n", "c"}).lease, 4294967295ms);
    for (const char* const text : {"0", "0s", "1us", "1.5ms", "4294967296ms", "-1s"}) {
        EXPECT_THAT(why_not({"run", "--lease", text, "n", "c"}), HasSubstr("whole milliseconds"))
            << text;
    }
}

TEST(arguments, grace_fits_the_lease) {
    EXPECT_EQ(run_of({"--lease=60s", "n", "c"}).grace, 5s);
    EXPECT_EQ(run_of({"--lease=4s", "n", "c"}).grace, 600ms);
    EXPECT_EQ(run_of({"--grace=0", "n", "c"}).grace, 0s);
    EXPECT_EQ(run_of({"--grace=2.9s", "n", "c"}).grace, 2900ms);
    EXPECT_EQ(why_not({"run", "--grace=3s", "n", "c"}),
              "--grace 3s: must be below 3s, which is 0.3 of the lease");
    EXPECT_EQ(why_not({"run", "--grace=1s", "--lease=1s", "n", "c"}),
              "--grace 1s: must be below 300ms, which is 0.3 of the lease");
    EXPECT_EQ(run_of({"--grace=4s", "--lease=20s", "n", "c"}).grace, 4s);
}

TEST(arguments, conflict_exit_code_is_never_zero) {
    for (const char* const text : {"0", "256", "-1", "x", "", "7 "}) {
        EXPECT_THAT(why_not({"run", "--conflict-exit-code", text, "n", "c"}),
                    HasSubstr("from 1 to 255"));
    }
}

TEST(arguments, server) {
    const variables set{{"MONOLOCK_SERVER", "unix:/run/m"}};
    EXPECT_EQ(run_of({"n", "c"}, set).server, "unix:/run/m");
    EXPECT_EQ(run_of({"--server=h:1", "n", "c"}, set).server, "h:1");
    EXPECT_EQ(run_of({"n", "c"}, {{"MONOLOCK_SERVER", ""}}).server, ":7070");
    EXPECT_THAT(why_not({"run", "--server", "::1:7070", "n", "c"}),
                testing::AllOf(HasSubstr(R"(--server "::1:7070")"), HasSubstr("[::1]:7070")));
    EXPECT_THAT(why_not({"run", "n", "c"}, {{"MONOLOCK_SERVER", "h:70707"}}),
                HasSubstr(R"(MONOLOCK_SERVER "h:70707": the port)"));
    EXPECT_THAT(why_not({"run", "--server", "h:0", "n", "c"}), HasSubstr("port 0"));
}

TEST(arguments, several_servers) {
    const run_options out = run_of({"--server", "a:1,[::1]:2,unix:/run/m", "n", "c"});
    EXPECT_EQ(out.server, "a:1,[::1]:2,unix:/run/m");
    EXPECT_TRUE(has_server_list(out));
    EXPECT_FALSE(out.coordinated);
    EXPECT_FALSE(has_server_list(run_of({"--server", "a:1", "n", "c"})));
    EXPECT_TRUE(run_of({"--coordinated", "n", "c"}).coordinated);
    EXPECT_TRUE(run_of({"n", "c"}, {{"MONOLOCK_COORDINATED", "1"}}).coordinated);
    EXPECT_EQ(why_not({"run", "n", "c"}, {{"MONOLOCK_COORDINATED", "yes"}}),
              "MONOLOCK_COORDINATED \"yes\": must be 1, or unset");
    EXPECT_EQ(why_not({"run", "--server", "a:1, b:1", "n", "c"}),
              "--server \"a:1, b:1\": address 2 of the list: no blank goes beside a comma");
    EXPECT_THAT(why_not({"run", "n", "c"}, {{"MONOLOCK_SERVER", "a:1,b:0"}}),
                HasSubstr("MONOLOCK_SERVER \"a:1,b:0\": nothing can be reached at port 0"));
}

TEST(arguments, several_servers_over_tls_need_a_name_each) {
    EXPECT_TRUE(run_of({"--server=a:1,10.0.0.1:1", "--tls", "n", "c"}).tls);
    EXPECT_THAT(why_not({"run", "--server=a:1,:1", "--tls", "n", "c"}),
                HasSubstr("TLS to \":1\" needs --tls-name"));
    EXPECT_TRUE(run_of({"--server=a:1,:1", "--tls-name=x", "n", "c"}).tls);
}

TEST(arguments, tls_is_off_unless_asked_for) {
    EXPECT_FALSE(run_of({"n", "c"}).tls);
    EXPECT_FALSE(run_of({"n", "c"}, {{"MONOLOCK_TLS", ""}, {"MONOLOCK_TLS_CA", ""}}).tls);
    const auto system = run_of({"--server=h:1", "--tls", "n", "c"}).tls;
    ASSERT_TRUE(system);
    EXPECT_EQ(system->ca_file, "");
    EXPECT_TRUE(run_of({"--server=h:1", "n", "c"}, {{"MONOLOCK_TLS", "1"}}).tls);
    EXPECT_EQ(why_not({"run", "--server=h:1", "n", "c"}, {{"MONOLOCK_TLS", "0"}}),
              R"(MONOLOCK_TLS "0": must be 1, or unset)");
}

TEST(arguments, any_tls_option_turns_it_on) {
    EXPECT_EQ(run_of({"--server=h:1", "--tls-ca=ca.pem", "n", "c"}).tls->ca_file, "ca.pem");
    EXPECT_EQ(run_of({"--server=h:1", "--tls-name=x", "n", "c"}).tls->server_name, "x");
    const variables set{{"MONOLOCK_SERVER", "h:1"},
                        {"MONOLOCK_TLS_CA", "a"},
                        {"MONOLOCK_TLS_CERT", "b"},
                        {"MONOLOCK_TLS_KEY", "c"},
                        {"MONOLOCK_TLS_NAME", "x.test"}};
    const auto all = run_of({"--tls-ca", "flag", "n", "c"}, set).tls;
    ASSERT_TRUE(all);
    EXPECT_EQ(all->ca_file, "flag");
    EXPECT_EQ(all->certificate_file, "b");
    EXPECT_EQ(all->key_file, "c");
    EXPECT_EQ(all->server_name, "x.test");
}

TEST(arguments, tls_options_that_lack_something) {
    EXPECT_EQ(why_not({"run", "--server=h:1", "--tls-cert=a", "n", "c"}),
              "--tls-cert: needs --tls-key as well");
    EXPECT_EQ(why_not({"run", "--server=h:1", "n", "c"}, {{"MONOLOCK_TLS_KEY", "a"}}),
              "MONOLOCK_TLS_KEY: needs --tls-cert as well");
    EXPECT_THAT(why_not({"run", "--tls-ca=", "n", "c"}),
                HasSubstr("--tls-ca \"\": cannot be empty"));
    EXPECT_THAT(why_not({"run", "--tls", "n", "c"}),
                HasSubstr(R"(TLS to ":7070" needs --tls-name)"));
    EXPECT_THAT(why_not({"run", "--tls", "--server=unix:/run/m", "n", "c"}),
                HasSubstr("needs --tls-name"));
    EXPECT_EQ(run_of({"--server=unix:/run/m", "--tls-name=x", "n", "c"}).tls->server_name, "x");
    EXPECT_THAT(why_not({"run", "--server=h:1", "n", "c"}, {{"MONOLOCK_TLS_NAME", "*.x"}}),
                HasSubstr(R"(MONOLOCK_TLS_NAME "*.x": the name)"));
}

TEST(arguments, names) {
    EXPECT_THAT(why_not({"run", "", "c"}), HasSubstr("empty lock name"));
    EXPECT_THAT(why_not({"run", std::string(256, 'x').c_str(), "c"}), HasSubstr("too long"));
    EXPECT_THAT(why_not({"run", "\xFF", "c"}), HasSubstr("not valid UTF-8"));
    EXPECT_EQ(run_of({std::string(255, 'x').c_str(), "c"}).name.size(), 255U);
}

TEST(arguments, mistakes_get_a_hint) {
    EXPECT_THAT(why_not({}), HasSubstr("monolockctl run NAME"));
    EXPECT_THAT(why_not({"walk"}), HasSubstr(R"(unknown command "walk")"));
    EXPECT_THAT(why_not({"run"}), HasSubstr("no lock name"));
    EXPECT_THAT(why_not({"run", "n"}), HasSubstr("no command"));
    EXPECT_THAT(why_not({"run", "n", "--"}), HasSubstr("no command"));
    EXPECT_THAT(why_not({"run", "--waits", "3s", "n", "c"}), HasSubstr(R"("--waits")"));
    EXPECT_THAT(why_not({"run", "--wait"}), HasSubstr("--wait needs a value"));
    EXPECT_THAT(why_not({"help", "walk"}), HasSubstr("help on: run"));
    EXPECT_EQ(help_of({"help", "audit", "report"}), help_of({"help", "audit"}));
}

TEST(arguments, help_lists_options_and_exit_codes) {
    for (const words& spelling :
         {words{"run", "-h"}, words{"run", "--help"}, words{"help", "run"}}) {
        const std::string text = help_of(spelling);
        for (const char* const part : {"--lease",
                                       "--wait",
                                       "--no-wait",
                                       "--retry",
                                       "--grace",
                                       "--conflict-exit-code",
                                       "--server",
                                       "MONOLOCK_SERVER",
                                       "MONOLOCK_TOKEN",
                                       "--tls ",
                                       "--tls-ca",
                                       "--tls-cert",
                                       "--tls-key",
                                       "--tls-name",
                                       "MONOLOCK_TLS_CA",
                                       " 69 ",
                                       " 70 ",
                                       " 71 ",
                                       " 74 ",
                                       " 75 ",
                                       " 76 ",
                                       " 77 ",
                                       " 78 ",
                                       " 126 ",
                                       " 127 "}) {
            EXPECT_THAT(text, HasSubstr(part));
        }
    }
    for (const words& spelling : {words{"-h"}, words{"--help"}, words{"help"}}) {
        EXPECT_THAT(help_of(spelling), HasSubstr("monolockctl run [OPTIONS] NAME"));
    }
    EXPECT_EQ(help_of({"--version"}), "monolockctl " MONOLOCK_VERSION "\n");
}

}  // namespace
}  // namespace monolock::cli
