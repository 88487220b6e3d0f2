#include "cli/admin/api_answers.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/admin/admin_error.hpp"

namespace monolock::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* lock_answer = R"({"name":"a\nb","holder":{"id":1,"identity":"w","remote_addr":
    "127.0.0.1:1","since":"2026-03-01T09:30:00.250Z","held_ms":5,"silent_ms":6,"lease_ms":7,"token":8},
    "waiters":[{"id":2,"identity":"","remote_addr":"127.0.0.1:2","queued_at":"2026-03-01T09:30:00.250Z",
    "waited_ms":9,"lease_ms":10}],"waiters_total":1,"a key of tomorrow":[]})";

TEST(api_answers, a_lock) {
    const lock_facts lock = lock_from(parse_object(lock_answer));
    EXPECT_EQ(lock.name, "a\nb");
    EXPECT_EQ(lock.holder->id, 1U);
    EXPECT_EQ(lock.holder->identity, "w");
    EXPECT_EQ(lock.holder->remote_addr, "127.0.0.1:1");
    EXPECT_EQ(lock.holder->since, "2026-03-01T09:30:00.250Z");
    EXPECT_EQ(lock.holder->held, 5ms);
    EXPECT_EQ(lock.holder->silent, 6ms);
    EXPECT_EQ(lock.holder->lease, 7ms);
    EXPECT_EQ(lock.holder->token, 8U);
    ASSERT_EQ(lock.waiters.size(), 1U);
    EXPECT_EQ(lock.waiters[0].id, 2U);
    EXPECT_EQ(lock.waiters[0].waited, 9ms);
    EXPECT_EQ(lock.waiters_total, 1U);
}

TEST(api_answers, a_lock_whose_server_shuts_down_has_no_owner) {
    json document = parse_object(lock_answer);
    document["holder"] = nullptr;
    EXPECT_FALSE(lock_from(document).holder);
}

// Every key is needed and every type is looked at: what is something else is never taken for a
// lock.
TEST(api_answers, what_is_something_else_is_refused) {
    for (const char* const text : {"", "<html>", "[]", "3", "{", "{} {}", "{\"a\":\xff}"}) {
        EXPECT_THROW(static_cast<void>(parse_object(text)), bad_answer) << text;
    }
    using namespace std::string_view_literals;
    EXPECT_THROW(static_cast<void>(parse_object("{}\0{}"sv)), bad_answer);
    const json good = parse_object(lock_answer);
    for (const char* const key : {"name", "holder", "waiters", "waiters_total"}) {
        json missing = good;
        missing.erase(key);
        EXPECT_THROW(static_cast<void>(lock_from(missing)), bad_answer) << key;
        json other = good;
        other[key] = -1.5;
        EXPECT_THROW(static_cast<void>(lock_from(other)), bad_answer) << key;
    }
    for (const auto& [key, value] : good["holder"].items()) {
        json other = good;
        other["holder"][key] = -1;
        EXPECT_THROW(static_cast<void>(lock_from(other)), bad_answer) << key;
    }
    EXPECT_THROW(static_cast<void>(locks_from(good)), bad_answer);
    EXPECT_THROW(static_cast<void>(locks_from(parse_object(R"({"locks":[null]})"))), bad_answer);
}

TEST(api_answers, numbers_have_their_range) {
    const json good = parse_object(lock_answer);
    const auto refuses = [&](const char* key, const json& number) {
        json other = good;
        other["holder"][key] = number;
        EXPECT_THROW(static_cast<void>(lock_from(other)), bad_answer) << key << " " << number;
    };
    for (const char* const key : {"held_ms", "silent_ms", "lease_ms"}) {
        for (const json& number : {json(-1), json(0.5), json(1e30), json((1ULL << 53U) + 1),
                                   json(0xFFFF'FFFF'FFFF'FFFFU)}) {
            refuses(key, number);
        }
    }
    for (const char* const key : {"id", "token"}) {
        for (const json& number : {json(-1), json(0U), json(1e30)}) {
            refuses(key, number);
        }
    }
    json crowded = good;
    crowded["waiters_total"] = 0U;
    EXPECT_THROW(static_cast<void>(lock_from(crowded)), bad_answer);
}

json page_of(const std::vector<std::string>& names) {
    json page = json::object({{"locks", json::array()}});
    for (const std::string& name : names) {
        page["locks"].push_back(parse_object(lock_answer));
        page["locks"].back()["name"] = name;
    }
    return page;
}

TEST(api_answers, a_listing_is_in_order) {
    EXPECT_EQ(locks_from(page_of({})).size(), 0U);
    EXPECT_EQ(locks_from(page_of({"a", "b", "\x7f", "\u00fc"})).size(), 4U);  // as bytes
    EXPECT_EQ(locks_from(page_of({"b"}), "a").size(), 1U);
    for (const auto& names :
         {std::vector<std::string>{"a", "a"}, {"b", "a"}, {""}, {"\u00fc", "z"}}) {
        EXPECT_THROW(static_cast<void>(locks_from(page_of(names))), bad_answer);
    }
    EXPECT_THROW(static_cast<void>(locks_from(page_of({"b", "c"}), "b")), bad_answer);
}

TEST(api_answers, the_next_page_is_a_page_of_the_same_server) {
    const auto next_of = [](const json& next) {
        return next_page_from(json::object({{"locks", json::array()}, {"next", next}}));
    };
    EXPECT_EQ(next_page_from(page_of({})), std::nullopt);
    EXPECT_EQ(next_of("/api/locks?limit=5&after=%C3%BC"), "/api/locks?limit=5&after=%C3%BC");
    for (const json& next :
         {json("http://10.0.0.1/api/locks?after=a"), json("//10.0.0.1/api/locks?after=a"),
          json("/api/locks"), json("/api/lock/release?name=n"), json("/api/locks/n/release?x"),
          json("/api/locks?after=a b"), json("/api/locks?a HTTP/1.1\r\nX: y"),
          json("/api/locks?\u00fc"), json("/api/locks?\x7f"), json(""), json(nullptr), json(7)}) {
        EXPECT_THROW(static_cast<void>(next_of(next)), bad_answer) << next;
    }
}

// Far more than any stack holds.
TEST(api_answers, what_is_nested_deeply_is_refused_before_it_is_built) {
    constexpr std::size_t depth = 200'000;
    for (const std::string_view open : {"{\"a\":", "["}) {
        std::string text = "{\"a\":";
        for (std::size_t count = 0; count < depth; ++count) {
            text += open;
        }
        EXPECT_THROW(static_cast<void>(parse_object(text)), bad_answer);
        const std::string close = open == "[" ? "]" : "}";
        text += "1";
        for (std::size_t count = 0; count <= depth; ++count) {
            text += count == depth ? "}" : close;
        }
        EXPECT_THROW(static_cast<void>(parse_object(text)), bad_answer);
    }
    // What a server of tomorrow may say.
    EXPECT_NO_THROW(static_cast<void>(parse_object(R"({"a":[{"b":[{"c":[[[]]]}]}]})")));
}

TEST(api_answers, info_is_of_a_server) {
    const json good = parse_object(
        R"({"version":"1","uptime_ms":1,"config":{},"locks":0,"sessions":0,"tomorrow":1})");
    EXPECT_NO_THROW(check_info(good));
    for (const auto& [key, value] : good.items()) {
        json other = good;
        other[key] = nullptr;
        if (key == "tomorrow") {
            EXPECT_NO_THROW(check_info(other));
        } else {
            EXPECT_THROW(check_info(other), bad_answer) << key;
        }
    }
}

TEST(api_answers, the_lock_that_was_asked_for) {
    EXPECT_NO_THROW(check_name(parse_object(lock_answer), "a\nb"));
    EXPECT_THROW(check_name(parse_object(lock_answer), "a"), bad_answer);
    EXPECT_THROW(check_name(parse_object("{}"), ""), bad_answer);
}

TEST(api_answers, how_much_was_lost) {
    EXPECT_EQ(lost_from(parse_object(R"({"changes":3})")), 3U);
    for (const char* const text : {"{}", R"({"changes":"3"})", R"({"changes":-3})"}) {
        EXPECT_THROW(static_cast<void>(lost_from(parse_object(text))), bad_answer) << text;
    }
}

TEST(api_answers, changes) {
    const auto granted = change_from(parse_object(
        R"({"event":"granted","time":"t","name":"n","id":1,"identity":"","remote_addr":"r","token":3,"wait_ms":4})"));
    EXPECT_EQ(granted.lasted, 4ms);
    const auto released = change_from(parse_object(
        R"({"event":"released","time":"t","name":"n","id":1,"identity":"","remote_addr":"r","token":3,"held_ms":5,"reason":"force"})"));
    EXPECT_EQ(released.lasted, 5ms);
    EXPECT_EQ(released.reason, "force");
}

TEST(api_answers, a_line_is_ascii_and_says_the_same) {
    const json document = json::object({{"b", "ü\n\x7f\u202E"}, {"a", 9007199254740993U}});
    const std::string line = to_line(document);
    EXPECT_EQ(line, "{\"b\":\"\\u00fc\\n\\u007f\\u202e\",\"a\":9007199254740993}\n");
    EXPECT_EQ(json::parse(line), document);
    EXPECT_EQ(to_line(error_document("why")), "{\"error\":\"why\"}\n");
}

}  // namespace
}  // namespace monolock::cli
