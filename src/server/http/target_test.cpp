#include "server/http/target.hpp"

#include <gtest/gtest.h>

#include <array>

namespace monolock::server::http {
namespace {

using segments = std::vector<std::string>;
using parameters = std::vector<std::pair<std::string, std::string>>;
using namespace std::string_literals;

segments path_of(std::string_view text) {
    const auto made = parse_target(text);
    EXPECT_TRUE(made) << text;
    return made ? made->path : segments{};
}

parameters query_of(std::string_view text) {
    const auto made = parse_target(text);
    EXPECT_TRUE(made) << text;
    return made ? made->query : parameters{};
}

TEST(target, a_path_is_split_before_it_is_decoded) {
    EXPECT_EQ(path_of("/api/locks/a%2Fb"), (segments{"api", "locks", "a/b"}));
    EXPECT_EQ(path_of("/"), (segments{""}));
    EXPECT_EQ(path_of("/a//b/"), (segments{"a", "", "b", ""}));
    EXPECT_EQ(path_of("/./.."), (segments{".", ".."}));
    EXPECT_EQ(path_of("/a%3Fb%23c?x"), (segments{"a?b#c"}));
}

TEST(target, decodes_once_and_leaves_a_plus_alone) {
    EXPECT_EQ(path_of("/%252F"), (segments{"%2F"}));
    EXPECT_EQ(path_of("/a+b"), (segments{"a+b"}));
    EXPECT_EQ(path_of("/%20%c3%BC%00"), (segments{" \xC3\xBC\0"s}));
    EXPECT_EQ(query_of("/x?name=a+b%2B"), (parameters{{"name", "a+b+"}}));
}

TEST(target, a_query_is_pairs_in_order) {
    EXPECT_EQ(
        query_of("/x?a=1&b=%26%3D&a=2&c&=d&e=f=g"),
        (parameters{{"a", "1"}, {"b", "&="}, {"a", "2"}, {"c", ""}, {"", "d"}, {"e", "f=g"}}));
    EXPECT_EQ(query_of("/x"), parameters{});
    EXPECT_EQ(query_of("/x?"), parameters{});
    EXPECT_EQ(query_of("/x?a=b/c?d"), (parameters{{"a", "b/c?d"}}));
}

TEST(target, an_absolute_one_has_a_host_and_the_rest) {
    for (const auto& [text, authority, rest] :
         {std::array{"http://localhost:9091/api/info", "localhost:9091", "/api/info"},
          std::array{"HTTP://[::1]:1/a?b=http://c", "[::1]:1", "/a?b=http://c"},
          std::array{"http://h", "h", "/"}, std::array{"http://h?x", "h", "/?x"},
          std::array{"http://u@h/", "u@h", "/"}}) {
        const auto made = split_absolute(text);
        ASSERT_TRUE(made) << text;
        EXPECT_EQ(made->authority, authority);
        EXPECT_EQ(made->origin_form, rest);
    }
    for (const char* const text : {"", "/", "*", "/http://h/", "http:/h/", "http://", "http:///x",
                                   "http://?x", "https://h/", "h:1"}) {
        EXPECT_FALSE(split_absolute(text)) << text;
    }
}

TEST(target, encodes_what_it_decodes) {
    std::string every;
    for (int byte = 0; byte < 256; ++byte) {
        every += static_cast<char>(byte);
    }
    EXPECT_EQ(query_of("/x?name=" + percent_encoded(every)), (parameters{{"name", every}}));
    EXPECT_EQ(path_of("/" + percent_encoded(every)), (segments{every}));
    EXPECT_EQ(percent_encoded("a b/\xC3\xBC+-._~%"), "a%20b%2F%C3%BC%2B-._~%25");
}

TEST(target, refuses_what_is_not_one) {
    for (const char* const text :
         {"", "x", "*", "http://localhost/", "/%", "/%0", "/%zz", "/%0g", "/a%2", "/x?a=%",
          "/x?%g0=1", "/\xC3\xBC", "/a b", "/\x7F", "/\t"}) {
        EXPECT_FALSE(parse_target(text)) << text;
    }
}

}  // namespace
}  // namespace monolock::server::http
