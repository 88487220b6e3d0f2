#include "config/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monolock::config {
namespace {

using namespace std::string_literals;

address value_of(std::string_view text) {
    const auto value = parse_address(text);
    EXPECT_TRUE(value) << text;
    return value ? *value : address{};
}

std::string why_not(std::string_view text) {
    const auto value = parse_address(text);
    EXPECT_FALSE(value) << text;
    return value ? "" : value.error().text;
}

address tcp(std::string host, std::uint16_t port) {
    return tcp_address{.host = std::move(host), .port = port};
}

TEST(address, tcp) {
    EXPECT_EQ(value_of("0.0.0.0:7070"), tcp("0.0.0.0", 7070));
    EXPECT_EQ(value_of("locks.example:1"), tcp("locks.example", 1));
    EXPECT_EQ(value_of(":7070"), tcp("", 7070));
    EXPECT_EQ(value_of("host:0"), tcp("host", 0));
    EXPECT_EQ(value_of("host:65535"), tcp("host", 65535));
    EXPECT_EQ(value_of("[::1]:7070"), tcp("::1", 7070));
    EXPECT_EQ(value_of("[fe80::1%eth0]:7070"), tcp("fe80::1%eth0", 7070));
    EXPECT_EQ(value_of("[::ffff:10.0.0.1]:7070"), tcp("::ffff:10.0.0.1", 7070));
}

TEST(address, unix_sockets) {
    EXPECT_EQ(value_of("unix:/run/monolock.sock"),
              address{unix_address{.path = "/run/monolock.sock"}});
    EXPECT_EQ(value_of("unix:/a:b"), address{unix_address{.path = "/a:b"}});
    const std::string longest = "/" + std::string(unix_path_bytes_max - 1, 'x');
    EXPECT_EQ(value_of("unix:" + longest), address{unix_address{.path = longest}});
}

TEST(address, ipv6_without_brackets_gets_a_hint) {
    for (const std::string_view text : {"::1:7070", "::1", "fe80::1", "a:b:1"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("in brackets, like [::1]:7070")) << text;
    }
}

TEST(address, bad_ports) {
    for (const std::string_view text :
         {"host:", "host:65536", "host:-1", "host:+1", "host:7070x", "host: 7070", "host:0x10",
          "host:http", ":", "[::1]:", "[::1]:99999", "host:99999999999999999999"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("the port is not a number")) << text;
    }
    for (const std::string_view text : {"", "host", "7070", "[::1]", "[::1]7070"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("no port")) << text;
    }
}

TEST(address, what_cannot_be_a_host) {
    EXPECT_THAT(why_not("[::1:7070"), testing::HasSubstr("not closed"));
    for (const std::string_view text :
         {"[]:1", "[host]:1", "[127.0.0.1]:1", "[::1%]:1", "[::g]:1", "[fe80::1%a b]:1"}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("only an IPv6 address")) << text;
    }
    EXPECT_FALSE(parse_address("[::1\0]:1"s));
    for (const std::string& text : {"a b:1"s, "a\n:1"s, "a\0b:1"s, "tcp//a:1"s, "a,b:1"s, "me@a:1"s,
                                    "a\x7f:1"s, "a[b:1"s, "a]:1"s}) {
        EXPECT_THAT(why_not(text), testing::HasSubstr("not a host")) << text;
    }
}

TEST(address, bad_unix_paths) {
    EXPECT_THAT(why_not("unix:"), testing::HasSubstr("needs a path"));
    EXPECT_THAT(why_not("unix:" + std::string(unix_path_bytes_max + 1, 'x')),
                testing::HasSubstr("at most 107 bytes, this one has 108"));
    EXPECT_THAT(why_not("unix:/a\0b"s), testing::HasSubstr("NUL"));
}

TEST(address, to_string_is_the_inverse) {
    for (const std::string_view text :
         {"0.0.0.0:7070", ":7070", "[::1]:0", "[fe80::1%eth0]:7070", "unix:/run/x", "host:1"}) {
        EXPECT_EQ(to_string(value_of(text)), text);
    }
}

std::vector<address> list_of(std::string_view text) {
    const auto value = parse_address_list(text);
    EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().text);
    return value ? *value : std::vector<address>{};
}

std::string why_no_list(std::string_view text) {
    const auto value = parse_address_list(text);
    EXPECT_FALSE(value) << text;
    return value ? "" : value.error().text;
}

TEST(address_list, one_is_a_list) {
    EXPECT_THAT(list_of("a:1"), testing::ElementsAre(tcp("a", 1)));
    EXPECT_THAT(list_of("unix:/a b "), testing::ElementsAre(unix_address{.path = "/a b "}));
}

TEST(address_list, keeps_the_order) {
    EXPECT_THAT(list_of("b:1,a:1,[::1]:7070,:7070,unix:/run/m.sock"),
                testing::ElementsAre(tcp("b", 1), tcp("a", 1), tcp("::1", 7070), tcp("", 7070),
                                     unix_address{.path = "/run/m.sock"}));
}

TEST(address_list, one_wrong_address_is_reported_as_it_would_be_alone) {
    EXPECT_EQ(why_no_list("host"), why_not("host"));
    EXPECT_EQ(why_no_list(""), why_not(""));
}

TEST(address_list, says_which_one_is_wrong) {
    EXPECT_EQ(why_no_list("a:1,b"), "address 2 of the list: " + why_not("b"));
    EXPECT_EQ(why_no_list("a,b:1"), "address 1 of the list: " + why_not("a"));
    EXPECT_EQ(why_no_list("a:1,"), "address 2 of the list: is empty");
    EXPECT_EQ(why_no_list(",a:1"), "address 1 of the list: is empty");
    EXPECT_EQ(why_no_list("a:1,,b:1"), "address 2 of the list: is empty");
    EXPECT_EQ(why_no_list(","), "address 1 of the list: is empty");
}

TEST(address_list, no_blank_beside_a_comma) {
    EXPECT_EQ(why_no_list("a:1, b:1"), "address 2 of the list: no blank goes beside a comma");
    EXPECT_EQ(why_no_list("a:1 ,b:1"), "address 1 of the list: no blank goes beside a comma");
    EXPECT_EQ(why_no_list("unix:/a ,b:1"), "address 1 of the list: no blank goes beside a comma");
    EXPECT_THAT(list_of("a:1,unix:/b "), testing::SizeIs(2)) << "the path's own";
}

TEST(address_list, no_address_twice_however_it_is_written) {
    EXPECT_EQ(why_no_list("a:1,b:1,a:1"), "address 3 of the list: is there already");
    EXPECT_EQ(why_no_list("a:1,a:01"), "address 2 of the list: is there already");
    EXPECT_THAT(list_of("a:1,a:2"), testing::SizeIs(2));
}

TEST(address_list, has_a_bound) {
    std::string text = "a:1";
    for (std::size_t port = 2; port <= address_list_max; ++port) {
        text += ",a:" + std::to_string(port);
    }
    EXPECT_THAT(list_of(text), testing::SizeIs(address_list_max));
    EXPECT_EQ(why_no_list(text + ",b:1"), "at most 16 addresses");
}

}  // namespace
}  // namespace monolock::config
