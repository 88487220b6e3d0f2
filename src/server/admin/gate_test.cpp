#include "server/admin/gate.hpp"

#include <gtest/gtest.h>

namespace monolock::server::admin {
namespace {

using fields = std::vector<http::field>;

bool passes(fields with, std::string_view configured = "") {
    return !objection({.method = "GET", .target = "/", .fields = std::move(with), .body = {}},
                      configured);
}

TEST(gate, hosts_that_no_foreign_name_can_be) {
    for (const char* const host :
         {"127.0.0.1", "127.0.0.1:9091", "192.0.2.1:80", "localhost", "localhost:9091",
          "LocalHost:1", "[::1]", "[::1]:9091", "[2001:db8::1]:1", "127.0.0.1:"}) {
        EXPECT_TRUE(passes({{"Host", host}})) << host;
    }
    for (const char* const host :
         {"", "evil.example", "127.0.0.1.evil.example", "evil.example:9091",
          "localhost.evil.example", "127.0.0.1:9091@evil.example", "127.0.0.1@evil", "[::1",
          "[::1]evil", "[evil]", "::1", "[127.0.0.1]", "127.0.0.1:x", "127.0.0.1:123456", "127.1",
          "0x7f.0.0.1", "127.0.0.1 ", "localhost, evil.example"}) {
        EXPECT_FALSE(passes({{"Host", host}})) << host;
    }
}

TEST(gate, a_literal_with_something_behind_a_nul_is_none) {
    using namespace std::string_literals;
    EXPECT_FALSE(passes({{"Host", "127.0.0.1\0.evil.example"s}}));
    EXPECT_FALSE(passes({{"Host", "[::1\0.evil.example]:1"s}}));
}

TEST(gate, the_configured_host_is_ours) {
    EXPECT_TRUE(passes({{"Host", "Locks.Example:9091"}}, "locks.example"));
    EXPECT_TRUE(passes({{"Host", "locks.example"}}, "Locks.Example"));
    EXPECT_FALSE(passes({{"Host", "x.locks.example"}}, "locks.example"));
    EXPECT_FALSE(passes({{"Host", ""}}, ""));
}

TEST(gate, what_only_browsers_send) {
    const auto of_a_browser = [](fields with) {
        return is_of_a_browser(
            {.method = "GET", .target = "/", .fields = std::move(with), .body = {}});
    };
    EXPECT_TRUE(of_a_browser({{"Host", "evil"}, {"origin", "null"}}));
    EXPECT_TRUE(of_a_browser({{"sec-fetch-site", "none"}}));
    EXPECT_TRUE(of_a_browser({{"Sec-Fetch-Mode", "cors"}}));
    EXPECT_TRUE(of_a_browser({{"Referer", ""}}));
    EXPECT_TRUE(of_a_browser({{"User-Agent", "Mozilla/5.0 (X11)"}}));
    EXPECT_FALSE(of_a_browser({}));
    EXPECT_FALSE(of_a_browser({{"Host", "x"}, {"User-Agent", "curl/8.0"}}));
}

TEST(gate, exactly_one_host) {
    EXPECT_FALSE(passes({}));
    EXPECT_FALSE(passes({{"Host", "localhost"}, {"hOST", "localhost"}}));
}

TEST(gate, an_origin_must_be_this_one) {
    EXPECT_TRUE(passes({{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}}));
    EXPECT_TRUE(passes({{"Host", "[::1]:1"}, {"Origin", "http://[::1]:1"}}));
    for (const char* const origin :
         {"http://evil.example", "null", "", "https://localhost:1", "http://localhost:2",
          "http://localhost", "http://127.0.0.1:1", "http://localhost:1/", "localhost:1"}) {
        EXPECT_FALSE(passes({{"Host", "localhost:1"}, {"Origin", origin}})) << origin;
    }
    EXPECT_FALSE(passes({{"Host", "localhost:1"},
                         {"Origin", "http://localhost:1"},
                         {"Origin", "http://evil.example"}}));
}

TEST(gate, a_browser_must_say_that_no_other_site_asks) {
    for (const char* const site : {"same-origin", "none"}) {
        EXPECT_TRUE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", site}})) << site;
    }
    for (const char* const site :
         {"cross-site", "same-site", "", "Same-Origin", "none, cross-site"}) {
        EXPECT_FALSE(passes({{"Host", "localhost"}, {"Sec-Fetch-Site", site}})) << site;
    }
}

}  // namespace
}  // namespace monolock::server::admin
