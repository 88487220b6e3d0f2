#include "etcd/messages/record_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "etcd/messages/json_reader.hpp"

namespace monolock::etcd {
namespace {

using namespace std::chrono_literals;
using coordination::active_record;
using coordination::state_record;
using testing::HasSubstr;

const active_record reigning{.name = "a:7070", .ttl = 5s, .sequence = 3};
const state_record reign{.ceiling = record_ceiling_max,
                         .longest_lease = 30s,
                         .name = "a:7070",
                         .ttl = 5s,
                         .written_in = {9223372036854775807},
                         .sequence = 18446744073709551615U,
                         .resigned = true};

json object_of(const std::string& text) {
    return json::parse(text);
}
json without(json object, const char* key) {
    object.erase(key);
    return object;
}
json with(json object, const char* key, const json& value) {
    object[key] = value;
    return object;
}

// One line each, so that they can be compared with what etcdctl prints.
TEST(record_text, is_json_with_numbers_as_text) {
    EXPECT_EQ(object_of(to_text(reigning)),
              object_of(R"({"format":"1","name":"a:7070","ttl_ms":"5000","sequence":"3"})"));
    EXPECT_EQ(object_of(to_text(reign)), object_of(R"({
        "format":"1", "ceiling":"9223372036854775808", "longest_lease_ms":"30000", "name":"a:7070",
        "ttl_ms":"5000", "written_in":"9223372036854775807", "sequence":"18446744073709551615",
        "resigned":true})"));
    EXPECT_EQ(to_text(reign).find('\n'), std::string::npos);
}

TEST(record_text, comes_back) {
    EXPECT_EQ(*read_active_record(to_text(reigning)), reigning);
    EXPECT_EQ(*read_state_record(to_text(reign)), reign);
    const active_record odd{.name = "ä \"\n\x7f", .ttl = record_duration_max, .sequence = 0};
    EXPECT_EQ(*read_active_record(to_text(odd)), odd);
    const state_record first{.name = "", .ttl = 1ms, .written_in = {1}};
    EXPECT_EQ(*read_state_record(to_text(first)), first);
}

TEST(record_text, a_name_is_utf8) {
    active_record named = reigning;
    named.name = "a\xff";
    EXPECT_EQ(read_active_record(to_text(named))->name, "a\xEF\xBF\xBD");
}

TEST(record_text, members_of_a_later_version_are_passed_over) {
    EXPECT_EQ(*read_active_record(with(object_of(to_text(reigning)), "zone", {1, 2}).dump()),
              reigning);
    EXPECT_THAT(
        read_active_record(with(object_of(to_text(reigning)), "format", "2").dump()).error().text,
        HasSubstr("another format"));
}

TEST(record_text, nothing_is_made_up) {
    const json active = object_of(to_text(reigning));
    for (const char* const key : {"format", "name", "ttl_ms", "sequence"}) {
        EXPECT_FALSE(read_active_record(without(active, key).dump())) << key;
        EXPECT_FALSE(read_active_record(with(active, key, 1).dump())) << key;
        EXPECT_FALSE(read_active_record(with(active, key, nullptr).dump())) << key;
    }
    const json state = object_of(to_text(reign));
    for (const char* const key : {"format", "ceiling", "longest_lease_ms", "name", "ttl_ms",
                                  "written_in", "sequence", "resigned"}) {
        EXPECT_FALSE(read_state_record(without(state, key).dump())) << key;
        EXPECT_FALSE(read_state_record(with(state, key, 1).dump())) << key;
        EXPECT_FALSE(read_state_record(with(state, key, nullptr).dump())) << key;
    }
    // One is not the other.
    EXPECT_FALSE(read_state_record(to_text(reigning)));
}

TEST(record_text, numbers_are_within_their_bounds) {
    const json active = object_of(to_text(reigning));
    for (const char* const ttl :
         {"0", "-1", "31536000001", "", " 1", "1.0", "1e3", "9223372036854775808"}) {
        EXPECT_FALSE(read_active_record(with(active, "ttl_ms", ttl).dump())) << ttl;
    }
    EXPECT_FALSE(read_active_record(with(active, "sequence", "-1").dump()));
    EXPECT_FALSE(read_active_record(with(active, "sequence", "18446744073709551616").dump()));

    const json state = object_of(to_text(reign));
    for (const char* const term : {"0", "-1", "9223372036854775808"}) {
        EXPECT_FALSE(read_state_record(with(state, "written_in", term).dump())) << term;
    }
    for (const char* const ceiling : {"-1", "9223372036854775809", "18446744073709551615"}) {
        EXPECT_FALSE(read_state_record(with(state, "ceiling", ceiling).dump())) << ceiling;
    }
    EXPECT_FALSE(read_state_record(with(state, "longest_lease_ms", "-1").dump()));
    EXPECT_FALSE(read_state_record(with(state, "longest_lease_ms", "31536000001").dump()));
    EXPECT_TRUE(read_state_record(with(state, "longest_lease_ms", "0").dump()));
    EXPECT_FALSE(read_state_record(with(state, "resigned", "false").dump()));
}

TEST(record_text, only_a_whole_object_is_one) {
    const std::string text = to_text(reigning);
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_FALSE(read_active_record(text.substr(0, size)));
    }
    EXPECT_FALSE(read_active_record("[]"));
    EXPECT_FALSE(read_active_record("by hand"));
    EXPECT_FALSE(read_active_record(text + text));
    EXPECT_FALSE(read_active_record(
        R"({"format":"1","name":"a","ttl_ms":"5000","sequence":"3","sequence":"4"})"));
}

}  // namespace
}  // namespace monolock::etcd
