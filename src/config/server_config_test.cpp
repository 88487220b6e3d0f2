#include "config/server_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace monolock::config {
namespace {

using namespace std::chrono_literals;
using variables = std::map<std::string, const char*>;

server_arguments parse(const std::vector<const char*>& words, const variables& set = {}) {
    return parse_server_arguments(words, [&set](const char* name) -> const char* {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second;
    });
}

server_config config_of(const std::vector<const char*>& words, const variables& set = {}) {
    const auto out = parse(words, set);
    const auto* const wrong = std::get_if<diagnostic>(&out);
    EXPECT_TRUE(std::holds_alternative<server_config>(out)) << (wrong ? wrong->text : "no config");
    return std::holds_alternative<server_config>(out) ? std::get<server_config>(out)
                                                      : server_config{};
}

std::string why_not(const std::vector<const char*>& words, const variables& set = {}) {
    const auto out = parse(words, set);
    EXPECT_TRUE(std::holds_alternative<diagnostic>(out));
    const std::string text =
        std::holds_alternative<diagnostic>(out) ? std::get<diagnostic>(out).text : "";
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
}

TEST(server_config, defaults) {
    const server_config config = config_of({});
    EXPECT_EQ(config.listen, std::nullopt);
    EXPECT_EQ(to_string(listen_default()), "0.0.0.0:7070");
    EXPECT_EQ(config.ops_listen, std::nullopt);
    EXPECT_EQ(config.admin_listen, std::nullopt);
    EXPECT_EQ(config.io_timeout, 5s);
    EXPECT_EQ(config.log_level, telemetry::log_level::info);
    EXPECT_EQ(config.log_format, telemetry::log_format::text);
    EXPECT_EQ(config.threads, std::nullopt);
    EXPECT_EQ(config.shutdown_delay, 0s);
}

TEST(server_config, files_of_tls_and_acl) {
    const auto check = [](const server_config& config) {
        EXPECT_EQ(config.tls_cert, "server.pem");
        EXPECT_EQ(config.tls_key, "server.key");
        EXPECT_EQ(config.tls_client_ca, "ca.pem");
        EXPECT_EQ(config.acl_file, "acl.json");
        EXPECT_TRUE(config.tls());
        EXPECT_TRUE(config.mutual_tls());
    };
    check(config_of({"-tls-cert", "server.pem", "-tls-key=server.key", "--tls-client-ca", "ca.pem",
                     "-acl-file", "acl.json"}));
    check(config_of({}, {{"MONOLOCK_TLS_CERT", "server.pem"},
                         {"MONOLOCK_TLS_KEY", "server.key"},
                         {"MONOLOCK_TLS_CLIENT_CA", "ca.pem"},
                         {"MONOLOCK_ACL_FILE", "acl.json"}}));
    EXPECT_FALSE(config_of({}).tls());
    EXPECT_FALSE(config_of({"-tls-cert", "c", "-tls-key", "k"}).mutual_tls());
}

TEST(server_config, a_file_without_its_partner) {
    EXPECT_EQ(why_not({"-tls-cert", "c"}), "-tls-cert: needs -tls-key as well");
    EXPECT_EQ(why_not({"-tls-key", "k"}), "-tls-key: needs -tls-cert as well");
    EXPECT_EQ(why_not({"-tls-client-ca", "a"}), "-tls-client-ca: needs -tls-cert as well");
    EXPECT_EQ(why_not({"-acl-file", "a"}), "-acl-file: needs -tls-client-ca as well");
    EXPECT_EQ(why_not({"-acl-file", "a", "-tls-cert", "c", "-tls-key", "k"}),
              "-acl-file: needs -tls-client-ca as well");
    EXPECT_EQ(why_not({"-tls-client-ca", "a", "-tls-key", "k"}),
              "-tls-key: needs -tls-cert as well");
    EXPECT_EQ(why_not({}, {{"MONOLOCK_TLS_CERT", "c"}}),
              "MONOLOCK_TLS_CERT: needs -tls-key as well");
    EXPECT_EQ(why_not({"-tls-cert", ""}), R"(-tls-cert "": must name a file)");
}

TEST(server_config, every_flag_and_every_variable) {
    const auto check = [](const server_config& config) {
        EXPECT_EQ(to_string(config.listen.value()), "unix:/tmp/x");
        EXPECT_EQ(to_string(config.ops_listen.value()), "[::1]:9090");
        EXPECT_EQ(to_string(config.admin_listen.value()), "unix:/tmp/a");
        EXPECT_EQ(config.io_timeout, 250ms);
        EXPECT_EQ(config.log_level, telemetry::log_level::debug);
        EXPECT_EQ(config.log_format, telemetry::log_format::json);
        EXPECT_EQ(config.threads, 3U);
        EXPECT_EQ(config.shutdown_delay, 90s);
    };
    check(config_of({"-listen", "unix:/tmp/x", "-ops-listen=[::1]:9090", "--admin-listen",
                     "unix:/tmp/a", "-io-timeout=250ms", "--log-level", "debug",
                     "--log-format=json", "-threads", "3", "-shutdown-delay", "1m30s"}));
    check(config_of({}, {{"MONOLOCK_LISTEN_ADDRESS", "unix:/tmp/x"},
                         {"MONOLOCK_OPS_LISTEN_ADDRESS", "[::1]:9090"},
                         {"MONOLOCK_ADMIN_LISTEN_ADDRESS", "unix:/tmp/a"},
                         {"MONOLOCK_IO_TIMEOUT", "250ms"},
                         {"MONOLOCK_LOG_LEVEL", "debug"},
                         {"MONOLOCK_LOG_FORMAT", "json"},
                         {"MONOLOCK_THREADS", "3"},
                         {"MONOLOCK_SHUTDOWN_DELAY", "1m30s"}}));
}

TEST(server_config, precedence) {
    const variables set{{"MONOLOCK_THREADS", "3"}, {"MONOLOCK_IO_TIMEOUT", ""}};
    EXPECT_EQ(config_of({}, set).threads, 3U);
    EXPECT_EQ(config_of({"-threads=4"}, set).threads, 4U);
    EXPECT_EQ(config_of({"-threads=4", "-threads=5"}, set).threads, 5U);
    EXPECT_EQ(config_of({}, set).io_timeout, 5s);
    EXPECT_EQ(config_of({"-threads=4"}, {{"MONOLOCK_THREADS", "many"}}).threads, 4U);
}

TEST(server_config, mistakes_name_their_source) {
    EXPECT_EQ(why_not({"-threads", "0"}), R"(-threads "0": must be a number from 1 to 1024)");
    EXPECT_EQ(why_not({}, {{"MONOLOCK_THREADS", "0"}}),
              R"(MONOLOCK_THREADS "0": must be a number from 1 to 1024)");
    EXPECT_EQ(why_not({"-threads=0", "-threads=1"}),
              R"(-threads "0": must be a number from 1 to 1024)");
    for (const char* const text : {"-1", "+1", "1.5", "", "1025", "99999999999999999999", "1 "}) {
        EXPECT_THAT(why_not({"-threads", text}), testing::StartsWith("-threads ")) << text;
    }
    EXPECT_EQ(why_not({"-io-timeout", "5"}),
              R"(-io-timeout "5": a duration needs a unit, like 5s or 250ms)");
    EXPECT_EQ(why_not({"-io-timeout", "0"}), R"(-io-timeout "0": must be above zero)");
    EXPECT_EQ(why_not({"-io-timeout=-1s"}), R"(-io-timeout "-1s": must be above zero)");
    EXPECT_EQ(why_not({"-io-timeout=8761h"}), R"(-io-timeout "8761h": at most 8760h)");
    EXPECT_EQ(why_not({"--shutdown-delay=-1s"}), R"(-shutdown-delay "-1s": cannot be negative)");
    EXPECT_EQ(why_not({"-log-level=loud"}),
              R"(-log-level "loud": must be debug, info, warn or error)");
    EXPECT_EQ(why_not({}, {{"MONOLOCK_LOG_FORMAT", "x\ny"}}),
              R"(MONOLOCK_LOG_FORMAT "x\ny": must be text or json)");
    EXPECT_THAT(why_not({"-listen", "::1:7070"}),
                testing::AllOf(testing::StartsWith(R"(-listen "::1:7070": )"),
                               testing::HasSubstr("[::1]:7070")));
    EXPECT_EQ(why_not({"-listen="}),
              R"(-listen "": no port; write host:port, :port, [::1]:port or unix:/path)");
    EXPECT_EQ(why_not({"serve"}), R"(stray argument "serve": the server takes only flags)");
    EXPECT_EQ(why_not({"-threads=1", "--", "-h"}),
              R"(stray argument "-h": the server takes only flags)");
    EXPECT_EQ(why_not({"-lease", "5s"}), R"(unknown flag "-lease")");
}

// --- one of several servers

TEST(server_config, etcd_is_off_unless_endpoints_are_given) {
    const server_config config = config_of({});
    EXPECT_FALSE(config.one_of_several());
    EXPECT_EQ(config.etcd_prefix, "/monolock/");
    EXPECT_EQ(config.etcd_ttl, 5s);
    EXPECT_EQ(config.grant_delay, 0ms);
    EXPECT_EQ(config.grant_delay_max, 60s);
}

TEST(server_config, one_of_several_servers) {
    const auto check = [](const server_config& config) {
        EXPECT_TRUE(config.one_of_several());
        ASSERT_EQ(config.etcd_endpoints.size(), 2U);
        EXPECT_EQ(to_string(config.etcd_endpoints[1]), "https://b:2379");
        EXPECT_EQ(config.etcd_prefix, "/locks/");
        EXPECT_EQ(config.etcd_ttl, 10s);
        EXPECT_EQ(config.etcd_ca, "ca.pem");
        EXPECT_EQ(config.etcd_cert, "me.pem");
        EXPECT_EQ(config.etcd_key, "me.key");
        EXPECT_EQ(config.etcd_user_file, "user");
        EXPECT_EQ(config.advertise, "one");
        EXPECT_EQ(config.grant_delay, std::nullopt);
        EXPECT_EQ(config.grant_delay_max, 30s);
    };
    check(config_of({"-etcd-endpoints", "https://a:2379,https://b:2379", "-etcd-prefix=/locks/",
                     "-etcd-ttl", "10s", "-etcd-ca", "ca.pem", "-etcd-cert", "me.pem", "-etcd-key",
                     "me.key", "-etcd-user-file", "user", "-advertise", "one", "-grant-delay",
                     "auto", "-grant-delay-max", "30s"}));
    check(config_of({}, {{"MONOLOCK_ETCD_ENDPOINTS", "https://a:2379,https://b:2379"},
                         {"MONOLOCK_ETCD_PREFIX", "/locks/"},
                         {"MONOLOCK_ETCD_TTL", "10s"},
                         {"MONOLOCK_ETCD_CA", "ca.pem"},
                         {"MONOLOCK_ETCD_CERT", "me.pem"},
                         {"MONOLOCK_ETCD_KEY", "me.key"},
                         {"MONOLOCK_ETCD_USER_FILE", "user"},
                         {"MONOLOCK_ADVERTISE", "one"},
                         {"MONOLOCK_GRANT_DELAY", "auto"},
                         {"MONOLOCK_GRANT_DELAY_MAX", "30s"}}));
}

TEST(server_config, a_grant_delay_needs_no_etcd_unless_it_is_automatic) {
    EXPECT_EQ(config_of({"-grant-delay", "1500ms"}).grant_delay, 1500ms);
    EXPECT_EQ(config_of({"-grant-delay", "1us"}).grant_delay, 1ms)
        << "never shorter than asked for";
    EXPECT_EQ(why_not({"-grant-delay", "auto"}),
              R"(-grant-delay "auto": needs -etcd-endpoints as well: a server by itself does not )"
              "know what was granted before it");
    EXPECT_EQ(why_not({"-grant-delay", "-1s"}), R"(-grant-delay "-1s": cannot be negative)");
    EXPECT_EQ(why_not({"-grant-delay-max", "0s"}), R"(-grant-delay-max "0s": must be above zero)");
    EXPECT_EQ(why_not({"-grant-delay", "Auto"}),
              R"(-grant-delay "Auto": not a duration; write it like 5s, 250ms, 1m30s or 1.5h)");
}

TEST(server_config, mistakes_about_etcd) {
    const char* const plain = "http://a:2379";
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-ttl", "1500ms"}),
              R"(-etcd-ttl "1500ms": etcd knows whole seconds only)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-ttl", "0s"}),
              R"(-etcd-ttl "0s": must be above zero)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-ttl", "301s"}),
              R"(-etcd-ttl "301s": at most 5m)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-ttl", "1h"}),
              R"(-etcd-ttl "1h": at most 5m)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-advertise", ""}),
              R"(-advertise "": must be a name of 1 to 255 bytes)");
    const std::string long_name(256, 'x');
    EXPECT_THAT(why_not({"-etcd-endpoints", plain, "-advertise", long_name.c_str()}),
                ::testing::EndsWith("must be a name of 1 to 255 bytes"));
    EXPECT_THAT(why_not({"-etcd-endpoints", plain, "-advertise", "a\xff"}),
                ::testing::EndsWith("must be UTF-8 without control characters"));
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-advertise", "a\tb"}),
              R"(-advertise "a\tb": must be UTF-8 without control characters)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-prefix="}),
              R"(-etcd-prefix "": must name a prefix)");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-ca", "c"}),
              "-etcd-ca: needs https endpoints in -etcd-endpoints");
    EXPECT_EQ(why_not({"-etcd-endpoints", plain, "-etcd-cert", "c", "-etcd-key", "k"}),
              "-etcd-cert: needs https endpoints in -etcd-endpoints");
    EXPECT_EQ(why_not({"-etcd-endpoints", "https://a:2379", "-etcd-cert", "c"}),
              "-etcd-cert: needs -etcd-key as well");
    EXPECT_EQ(why_not({"-etcd-endpoints", "https://a:2379", "-etcd-key", "k"}),
              "-etcd-key: needs -etcd-cert as well");
    EXPECT_THAT(why_not({"-etcd-endpoints", "a:2379"}), testing::StartsWith("-etcd-endpoints "));
}

TEST(server_config, what_only_etcd_needs) {
    for (const char* const name :
         {"-etcd-prefix", "-etcd-ca", "-etcd-cert", "-etcd-key", "-etcd-user-file", "-advertise"}) {
        EXPECT_EQ(why_not({name, "x"}), std::string{name} + ": needs -etcd-endpoints as well")
            << name;
    }
    EXPECT_EQ(why_not({"-etcd-ttl", "5s"}), "-etcd-ttl: needs -etcd-endpoints as well");
    EXPECT_EQ(why_not({}, {{"MONOLOCK_ADVERTISE", "x"}}),
              "MONOLOCK_ADVERTISE: needs -etcd-endpoints as well");
}

TEST(server_config, help_lists_each_flag_with_variable_and_default) {
    for (const char* const spelling : {"-h", "--h", "-help", "--help"}) {
        const auto out = parse({spelling, "-nonsense"}, {{"MONOLOCK_THREADS", "many"}});
        ASSERT_TRUE(std::holds_alternative<help_text>(out));
        const std::string& text = std::get<help_text>(out).text;
        EXPECT_THAT(text, testing::ContainsRegex("-listen +MONOLOCK_LISTEN_ADDRESS +0.0.0.0:7070"));
        EXPECT_THAT(text, testing::ContainsRegex("-io-timeout +MONOLOCK_IO_TIMEOUT +5s"));
        EXPECT_THAT(text, testing::ContainsRegex("-log-level +MONOLOCK_LOG_LEVEL +info"));
        EXPECT_THAT(text, testing::ContainsRegex("-log-format +MONOLOCK_LOG_FORMAT +text"));
        EXPECT_THAT(text, testing::ContainsRegex("-threads +MONOLOCK_THREADS +cores"));
        EXPECT_THAT(text, testing::ContainsRegex("-shutdown-delay +MONOLOCK_SHUTDOWN_DELAY +0s"));
        EXPECT_THAT(text, testing::HasSubstr("-check"));
        EXPECT_THAT(text, testing::HasSubstr("-version"));
    }
}

TEST(server_config, check_is_a_flag_beside_the_others) {
    const auto out = parse({"-check", "-threads", "2"});
    ASSERT_TRUE(std::holds_alternative<server_config>(out));
    EXPECT_TRUE(std::get<server_config>(out).check_only);
    EXPECT_EQ(std::get<server_config>(out).threads, 2U);
    EXPECT_FALSE(std::get<server_config>(parse({})).check_only);
    EXPECT_EQ(why_not({"-check=1"}), "-check takes no value");
}

TEST(server_config, version) {
    const auto out = parse({"-version"});
    ASSERT_TRUE(std::holds_alternative<version_text>(out));
    EXPECT_EQ(std::get<version_text>(out).text, "monolock " MONOLOCK_VERSION "\n");
}

}  // namespace
}  // namespace monolock::config
