#include "etcd/messages/json_reader.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace monolock::etcd {
namespace {

TEST(json_reader, base64_both_ways) {
    for (std::size_t size = 0; size <= 256; ++size) {
        std::string bytes;
        for (std::size_t index = 0; index < size; ++index) {
            bytes += static_cast<char>(index * 7);
        }
        EXPECT_EQ(bytes_at({{"value", to_base64(bytes)}}, "value"), bytes);
    }
    EXPECT_EQ(to_base64(""), "");
    EXPECT_EQ(to_base64("a"), "YQ==");
    EXPECT_EQ(to_base64("\xfb\xff"), "+/8=");
    EXPECT_EQ(bytes_at(json::object(), "value"), "");
}

TEST(json_reader, base64_is_strict) {
    for (const char* const text :
         {"YQ", "YQ=", "YQ===", "Y", "=", "YQ==YQ==", "Y Q==", "YQ==\n", "-_8=", "YR==", "ä"}) {
        EXPECT_THROW(static_cast<void>(bytes_at({{"value", text}}, "value")), odd_message) << text;
    }
}

TEST(json_reader, an_absent_member_is_a_zero) {
    const json empty = {{"a", nullptr}};
    EXPECT_EQ(find(empty, "a"), nullptr);
    for (const char* const key : {"a", "b"}) {
        EXPECT_EQ(int64_at(empty, key), 0);
        EXPECT_FALSE(bool_at(empty, key));
        EXPECT_EQ(text_at(empty, key), "");
        EXPECT_TRUE(object_at(empty, key).empty());
        EXPECT_TRUE(list_at(empty, key).empty());
    }
}

TEST(json_reader, the_same_name_may_stand_in_different_objects) {
    EXPECT_EQ(parse_object(R"({"a":{"a":[{"a":1},{"a":2}]}})").size(), 1U);
    EXPECT_THROW(static_cast<void>(parse_object(R"({"a":{"b":1,"b":1}})")), odd_message);
    EXPECT_THROW(static_cast<void>(parse_object(R"({"a":1,"\u0061":1})")), odd_message);
}

}  // namespace
}  // namespace monolock::etcd
