#include "etcd/messages/user_file.hpp"

#include <gtest/gtest.h>

namespace monolock::etcd {
namespace {

using namespace std::string_view_literals;

TEST(user_file, a_user_and_a_password) {
    const credentials both{.user = "monolock", .password = "secret"};
    for (const std::string_view text :
         {"monolock:secret"sv, "monolock:secret\n"sv, "monolock:secret\r\n"sv}) {
        const auto read = parse_user_file(text);
        ASSERT_TRUE(read) << text;
        EXPECT_EQ(*read, both);
    }
    EXPECT_EQ(parse_user_file("a:b:c ä")->password, "b:c ä");
    EXPECT_EQ(parse_user_file(" a : b ")->user, " a ");
}

TEST(user_file, all_else_is_refused_and_not_repeated) {
    for (const std::string_view text :
         {""sv, "\n"sv, "monolock"sv, "monolock:"sv, ":secret"sv, ":"sv, "a:secret\n\n"sv,
          "a:secret\nb:c"sv, "a:sec\tret"sv, "a:sec\0ret"sv, "a:sec\x7fret"sv, "a:secret\xff"sv}) {
        const auto read = parse_user_file(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().text.find("secret"), std::string::npos);
    }
}

}  // namespace
}  // namespace monolock::etcd
