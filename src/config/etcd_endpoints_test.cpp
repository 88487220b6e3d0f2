#include "config/etcd_endpoints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace monolock::config {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<etcd_endpoint> value_of(std::string_view text) {
    const auto value = parse_etcd_endpoints(text);
    EXPECT_TRUE(value) << text << ": " << value.error().text;
    return value ? *value : std::vector<etcd_endpoint>{};
}

std::string why_not(std::string_view text) {
    const auto value = parse_etcd_endpoints(text);
    EXPECT_FALSE(value) << text;
    return value ? "" : value.error().text;
}

etcd_endpoint http(std::string host, std::uint16_t port) {
    return {.scheme = endpoint_scheme::http, .where = {.host = std::move(host), .port = port}};
}
etcd_endpoint https(std::string host, std::uint16_t port) {
    return {.scheme = endpoint_scheme::https, .where = {.host = std::move(host), .port = port}};
}

TEST(etcd_endpoints, one_and_many) {
    EXPECT_THAT(value_of("http://etcd:2379"), ElementsAre(http("etcd", 2379)));
    EXPECT_THAT(value_of("https://etcd-1.etcd_x.Example:65535"),
                ElementsAre(https("etcd-1.etcd_x.Example", 65535)));
    EXPECT_THAT(value_of("http://10.0.0.1:2379,http://[::1]:1,http://c:2379"),
                ElementsAre(http("10.0.0.1", 2379), http("::1", 1), http("c", 2379)));
}

TEST(etcd_endpoints, come_back_from_their_url) {
    for (const std::string_view text :
         {"http://etcd:2379", "https://etcd:2379", "https://[fe80::1]:443", "http://127.0.0.1:1"}) {
        EXPECT_EQ(to_string(value_of(text).at(0)), text);
    }
}

TEST(etcd_endpoints, a_slash_at_the_end_is_no_path) {
    EXPECT_THAT(value_of("http://etcd:2379/,http://b:1"),
                ElementsAre(http("etcd", 2379), http("b", 1)));
    EXPECT_EQ(to_string(value_of("http://etcd:2379/,http://[::1]:1")),
              "http://etcd:2379,http://[::1]:1");
    EXPECT_THAT(why_not("http://a:1, http://b:1"), HasSubstr("without a blank"));
}

TEST(etcd_endpoints, the_scheme_is_written_out) {
    for (const std::string_view text :
         {"", "etcd:2379", "HTTP://etcd:2379", "unix:/etcd", "grpc://etcd:2379", " http://etcd:1",
          "http:/etcd:2379", "http://a:1,", "http://a:1,,http://b:1", ",http://a:1"}) {
        EXPECT_THAT(why_not(text), HasSubstr("begins with http:// or https://")) << text;
    }
}

TEST(etcd_endpoints, nothing_follows_the_port) {
    for (const std::string_view text :
         {"http://etcd:2379//", "http://etcd:2379/v3", "http://etcd:2379/v3/",
          "https://etcd:2379?x", "http://etcd:2379#x"}) {
        EXPECT_THAT(why_not(text), HasSubstr("ends with its port")) << text;
    }
}

TEST(etcd_endpoints, the_user_is_for_a_file) {
    EXPECT_THAT(why_not("http://root:secret@etcd:2379"), HasSubstr("go into a file"));
}

TEST(etcd_endpoints, the_host_is_one_of_a_url) {
    const std::string nul = "http://a\0b:1"s;
    for (const std::string_view text :
         {"http://:2379"sv, "http://ätcd:1"sv, "http://et%63d:1"sv, "http://[fe80::1%eth0]:1"sv,
          "http://et\\cd:1"sv, "http://unix:1"sv, "http://a;b:1"sv, "http://a~b:1"sv,
          "http://a b:1"sv, std::string_view{nul}, "http://a\n:1"sv, "http://etcd"sv,
          "http://etcd:"sv, "http://etcd:65536"sv, "http://etcd:+1"sv, "http://::1:2379"sv,
          "http://[::1]"sv, "http://[etcd]:1"sv, "http://"sv}) {
        EXPECT_THAT(why_not(text), HasSubstr("is a host and its port")) << text;
    }
    EXPECT_THAT(why_not("http://etcd:0"), HasSubstr("port 0"));
}

TEST(etcd_endpoints, none_is_there_twice) {
    EXPECT_THAT(why_not("http://a:1,http://b:1,http://a:1"), HasSubstr("twice"));
    EXPECT_THAT(value_of("http://a:1,http://a:2"), ElementsAre(http("a", 1), http("a", 2)));
}

TEST(etcd_endpoints, all_are_of_one_scheme) {
    EXPECT_THAT(why_not("https://a:1,http://b:1"), HasSubstr("some https://"));
    EXPECT_EQ(value_of("https://a:1,https://b:1").size(), 2U);
}

}  // namespace
}  // namespace monolock::config
