#include "telemetry/escape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "protocol/utf8.hpp"

namespace monolock::telemetry {
namespace {

using namespace std::string_literals;

std::string json_of(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

std::string logfmt_of(std::string_view text) {
    std::string out;
    append_logfmt_value(out, text);
    return out;
}

std::string parse_back(std::string_view json) {
    return nlohmann::json::parse(json).get<std::string>();
}

// Nothing in the text can end or hide a line: no control byte, and none of the separators and
// direction marks that a viewer obeys.
bool stays_on_its_line(std::string_view text) {
    for (const char letter : text) {
        if (static_cast<unsigned char>(letter) < 0x20 || letter == '\x7f') {
            return false;
        }
    }
    for (const std::string_view mark :
         {"\u0085", "\u2028", "\u2029", "\u202E", "\u2066", "\u200F", "\uFEFF"}) {
        if (text.find(mark) != std::string_view::npos) {
            return false;
        }
    }
    return true;
}

TEST(escape, json_gives_back_every_single_character_below_u0100) {
    for (unsigned point = 0; point < 0x100; ++point) {
        const std::string text = point < 0x80
                                     ? std::string(1, static_cast<char>(point))
                                     : std::string{static_cast<char>(0xC0U | point >> 6U),
                                                   static_cast<char>(0x80U | (point & 0x3FU))};
        EXPECT_EQ(parse_back(json_of(text)), text) << point;
        EXPECT_TRUE(stays_on_its_line(json_of(text))) << point;
        EXPECT_TRUE(stays_on_its_line(logfmt_of(text))) << point;
    }
}

TEST(escape, json_gives_back_what_cases_name) {
    for (const std::string& text :
         {"\n"s, "\""s, "\\"s, "\0"s, "\x7f"s, "\u2028\u2029"s, "a\r\nlevel=error"s, ""s, "ü/€/𝄞"s,
          "\u202Egnp.exe"s, "\\u0041"s, "\xEF\xBB\xBF"s}) {
        EXPECT_EQ(parse_back(json_of(text)), text);
        EXPECT_TRUE(stays_on_its_line(json_of(text))) << json_of(text);
    }
}

// The marks that turn the direction of writing, and those that end a line, both bounds of each
// range.
TEST(escape, what_would_mislead_a_reader_never_stands_for_itself) {
    for (const std::string& mark : {"\u0080"s, "\u009F"s, "\u061C"s, "\u200E"s, "\u200F"s,
                                    "\u2028"s, "\u202E"s, "\u2066"s, "\u2069"s, "\uFEFF"s}) {
        EXPECT_EQ(json_of(mark).find(mark), std::string::npos) << json_of(mark);
        EXPECT_EQ(logfmt_of(mark).find(mark), std::string::npos) << logfmt_of(mark);
        EXPECT_EQ(parse_back(json_of(mark)), mark);
    }
    for (const std::string& letter : {"\u00A1"s, "\u061B"s, "\u2027"s, "\u206A"s}) {
        EXPECT_EQ(json_of(letter), "\"" + letter + "\"");
    }
}

TEST(escape, json_replaces_each_byte_that_is_not_utf8) {
    EXPECT_EQ(parse_back(json_of("a\xFFz")), "a\uFFFDz");
    EXPECT_EQ(parse_back(json_of("\xC3")), "\uFFFD");
    EXPECT_EQ(parse_back(json_of("\xED\xA0\x80")), "\uFFFD\uFFFD\uFFFD");  // a surrogate
    EXPECT_EQ(parse_back(json_of("\xC0\xAF")), "\uFFFD\uFFFD");            // an overlong slash
    EXPECT_EQ(parse_back(json_of("\xF4\x90\x80\x80")), "\uFFFD\uFFFD\uFFFD\uFFFD");  // U+110000
}

TEST(escape, logfmt_is_bare_only_where_no_reader_can_be_misled) {
    EXPECT_EQ(logfmt_of("nightly/import-7"), "nightly/import-7");
    EXPECT_EQ(logfmt_of(""), R"("")");
    EXPECT_EQ(logfmt_of("a b"), R"("a b")");
    EXPECT_EQ(logfmt_of("a=b"), R"("a=b")");
    EXPECT_EQ(logfmt_of("a\"b\\c"), R"("a\"b\\c")");
    EXPECT_EQ(logfmt_of("a\nb\tc\rd"), R"("a\nb\tc\rd")");
    EXPECT_EQ(logfmt_of("\x01\x7f\u2028"), R"("\u{1}\u{7f}\u{2028}")");
    EXPECT_EQ(logfmt_of("\xFF\xC3"), R"("\xff\xc3")");
    EXPECT_EQ(logfmt_of("ü"), R"("ü")");
}

TEST(escape, logfmt_shows_what_is_not_seen) {
    EXPECT_EQ(logfmt_of("a\u200Bb"), R"("a\u{200b}b")");
    EXPECT_EQ(logfmt_of("a\u00A0b"), R"("a\u{a0}b")");
    EXPECT_EQ(logfmt_of("a\u3000b"), R"("a\u{3000}b")");
    EXPECT_EQ(logfmt_of("a\U000E0041"), R"("a\u{e0041}")");
    EXPECT_EQ(logfmt_of("a\u00ADb\u3164"), R"("a\u{ad}b\u{3164}")");
    // A mark stays on its letter, and has none in a quote or an escape.
    EXPECT_EQ(logfmt_of("e\u0301\u0302"), "\"e\u0301\u0302\"");
    EXPECT_EQ(logfmt_of("\u0301e"), R"("\u{301}e")");
    EXPECT_EQ(logfmt_of("\u0301\u0302"), R"("\u{301}\u{302}")");
    EXPECT_EQ(logfmt_of("a\n\u0301"), R"("a\n\u{301}")");
    EXPECT_EQ(logfmt_of("a\u200B\u0301"), R"("a\u{200b}\u{301}")");
    EXPECT_EQ(json_of("\u0301\U000E0041"), "\"\u0301\U000E0041\"");  // for programs
}

TEST(escape, quoted_is_quoted_always) {
    EXPECT_EQ(quoted("5"), R"("5")");
}

// Random bytes: the validity verdict agrees with the protocol's, a valid text comes back, and two
// different texts never look alike in logfmt.
TEST(escape, random_bytes) {
    constexpr unsigned seed = 20260301;
    std::mt19937 random{seed};
    constexpr std::string_view pool =
        "ab\"\\\n=\xC3\xBC\xCC\x81\xE2\x80\xA8\x8B\xF0\x9D\x84\x9E\xED\xA0\xC0\x7f";
    std::set<std::string> texts;
    std::set<std::string> escaped;
    for (int round = 0; round < 20000; ++round) {
        std::string text(std::uniform_int_distribution<std::size_t>{0, 8}(random), '\0');
        for (char& letter : text) {
            letter = pool[std::uniform_int_distribution<std::size_t>{0, pool.size() - 1}(random)];
        }
        const std::string json = json_of(text);
        ASSERT_TRUE(stays_on_its_line(json) && stays_on_its_line(logfmt_of(text))) << seed;
        ASSERT_EQ(parse_back(json) == text, protocol::is_valid_utf8(text)) << json;
        texts.insert(text);
        escaped.insert(logfmt_of(text));
    }
    EXPECT_EQ(texts.size(), escaped.size());
}

}  // namespace
}  // namespace monolock::telemetry
