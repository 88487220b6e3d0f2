#include "tls/server_name.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monolock::tls {
namespace {

using testing::HasSubstr;

server_name name_of(const char* address, std::string_view given = {}) {
    const auto where = config::parse_address(address);
    EXPECT_TRUE(where) << address;
    const auto name = expected_server_name(*where, given);
    EXPECT_TRUE(name) << address << ": " << (name ? "" : name.error().text);
    return name ? *name : server_name{};
}

std::string why_not(const char* address, std::string_view given = {}) {
    const auto where = config::parse_address(address);
    EXPECT_TRUE(where) << address;
    const auto name = expected_server_name(*where, given);
    EXPECT_FALSE(name) << address << " gives " << (name ? name->text : "");
    return name ? "" : name.error().text;
}

TEST(server_name, is_the_host_of_the_address) {
    EXPECT_EQ(name_of("locks.example:7070"), (server_name{"locks.example", false}));
    EXPECT_EQ(name_of("my_host:1"), (server_name{"my_host", false}));
    EXPECT_EQ(name_of("locks.example.:1"), (server_name{"locks.example", false}));
    EXPECT_EQ(name_of("10.0.0.7:1"), (server_name{"10.0.0.7", true}));
    EXPECT_EQ(name_of("[2001:db8::1]:1"), (server_name{"2001:db8::1", true}));
    EXPECT_EQ(name_of("[fe80::1%eth0]:1"), (server_name{"fe80::1", true}));
    // Numbers that a resolver would take for an address and a certificate cannot hold as one.
    EXPECT_EQ(name_of("127.1:1"), (server_name{"127.1", false}));
}

TEST(server_name, is_what_was_given_instead) {
    EXPECT_EQ(name_of("10.0.0.7:1", "locks.example"), (server_name{"locks.example", false}));
    EXPECT_EQ(name_of("unix:/run/m", "locks.example"), (server_name{"locks.example", false}));
    EXPECT_EQ(name_of(":7070", "::1"), (server_name{"::1", true}));
}

TEST(server_name, is_never_nothing) {
    EXPECT_THAT(why_not(":7070"), HasSubstr("no host"));
    EXPECT_THAT(why_not("unix:/run/m"), HasSubstr("no host"));
    EXPECT_THAT(why_not("h:1", "."), HasSubstr("DNS name"));
}

// A leading dot would match anything below, and a star is for certificates.
TEST(server_name, is_no_pattern_and_nothing_odd) {
    for (const std::string_view given :
         {".example", "*.example", "*", "a..b", "a b", "[::1]", "::1]", "a:7070",
          "b\xc3\xbc.example", "a/b", "@", "%eth0"}) {
        EXPECT_THAT(why_not("h:1", given), HasSubstr("DNS name")) << given;
    }
    EXPECT_THAT(why_not("h:1", std::string_view{"a\0b", 3}), HasSubstr("DNS name"));
    EXPECT_THAT(why_not("h:1", std::string_view{"1.2.3.4\0b", 9}), HasSubstr("DNS name"));
    EXPECT_THAT(why_not("h:1", std::string(254, 'a')), HasSubstr("DNS name"));
    EXPECT_THAT(why_not("10.0.0.7.:1"), HasSubstr("DNS name"))
        << "an address, yet not checked as one";
}

}  // namespace
}  // namespace monolock::tls
