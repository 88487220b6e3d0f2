#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/utf8_oracle.hpp"

namespace monolock::fuzz {

// A JSON text (RFC 8259) as a tree, by a plain reader of its grammar that shares nothing with the
// library. As there, a number that no double holds is none.
struct json_node {
    enum class kind : std::uint8_t { null, boolean, number, string, array, object };

    kind what = kind::null;
    std::string key;               // of a member
    std::string text;              // of a string
    double number = 0;             // of a number
    std::vector<json_node> items;  // of an array; the members of an object

    // Null if there is none, or more than one.
    [[nodiscard]] const json_node* find(std::string_view name) const {
        const json_node* found = nullptr;
        for (const json_node& each : items) {
            if (what == kind::object && each.key == name) {
                if (found != nullptr) {
                    return nullptr;
                }
                found = &each;
            }
        }
        return found;
    }
};

class json_oracle {
public:
    // Nothing if the text is no JSON.
    static std::optional<json_node> parse(std::string_view text) {
        json_oracle reader{text};
        json_node made;
        reader.skip_blanks();
        reader.take_value(made);
        reader.skip_blanks();
        return reader.wrong_ || !reader.left_.empty() ? std::nullopt
                                                      : std::optional{std::move(made)};
    }

private:
    explicit json_oracle(std::string_view text) : left_{text} {}

    [[nodiscard]] char peek() const { return left_.empty() ? '\0' : left_.front(); }

    bool skip(std::string_view exactly) {
        if (wrong_ || !left_.starts_with(exactly)) {
            return false;
        }
        left_.remove_prefix(exactly.size());
        return true;
    }
    void take(std::string_view exactly) { wrong_ = !skip(exactly) || wrong_; }
    void skip_blanks() {
        const std::size_t blanks = left_.find_first_not_of(" \t\r\n");
        left_.remove_prefix(blanks == std::string_view::npos ? left_.size() : blanks);
    }

    void take_value(json_node& into) {
        using enum json_node::kind;
        if (wrong_) {
            return;
        }
        switch (peek()) {
            case '{':
                into.what = object;
                take_list("{", "}", [&] {
                    json_node& member = into.items.emplace_back();
                    take_string(member.key);
                    skip_blanks();
                    take(":");
                    skip_blanks();
                    take_value(member);
                });
                break;
            case '[':
                into.what = array;
                take_list("[", "]", [&] { take_value(into.items.emplace_back()); });
                break;
            case '"':
                into.what = string;
                take_string(into.text);
                break;
            case 'n':
                take("null");
                break;
            case 't':
            case 'f':
                into.what = boolean;
                take(peek() == 't' ? "true" : "false");
                break;
            default:
                into.what = number;
                take_number(into);
        }
    }

    template <class Item>
    void take_list(std::string_view open, std::string_view close, Item item) {
        take(open);
        skip_blanks();
        if (skip(close)) {
            return;
        }
        do {
            skip_blanks();
            item();
            skip_blanks();
        } while (skip(","));
        take(close);
    }

    std::size_t take_digits() {
        std::size_t count = 0;
        for (; peek() >= '0' && peek() <= '9'; ++count) {
            left_.remove_prefix(1);
        }
        return count;
    }
    void take_number(json_node& into) {
        const std::string_view begin = left_;
        skip("-");
        const bool zero = peek() == '0';
        const std::size_t whole = take_digits();
        wrong_ = wrong_ || whole == 0 || (zero && whole > 1);
        if (skip(".")) {
            wrong_ = take_digits() == 0 || wrong_;
        }
        if (skip("e") || skip("E")) {
            static_cast<void>(skip("+") || skip("-"));
            wrong_ = take_digits() == 0 || wrong_;
        }
        const std::string token{begin.substr(0, begin.size() - left_.size())};
        into.number = std::strtod(token.c_str(), nullptr);
        wrong_ = wrong_ || std::isinf(into.number);
    }

    void take_string(std::string& into) {
        take("\"");
        while (!wrong_ && !skip("\"")) {
            if (skip("\\")) {
                take_escape(into);
            } else if (static_cast<unsigned char>(peek()) < 0x20) {
                wrong_ = true;  // the end of the text as well
            } else {
                into += peek();
                left_.remove_prefix(1);
            }
        }
        wrong_ = wrong_ || !utf8_oracle(into);
    }

    void take_escape(std::string& into) {
        constexpr std::string_view letters = "\"\\/bfnrt";
        const std::size_t which = letters.find(peek());
        if (which != std::string_view::npos && !left_.empty()) {
            into += "\"\\/\b\f\n\r\t"[which];
            left_.remove_prefix(1);
            return;
        }
        take("u");
        std::uint32_t point = take_hex();
        if (point >= 0xD800 && point <= 0xDBFF) {
            take("\\u");
            const std::uint32_t low = take_hex();
            wrong_ = wrong_ || low < 0xDC00 || low > 0xDFFF;
            point = 0x10000 + (point - 0xD800) * 0x400 + (low - 0xDC00);
        } else {
            wrong_ = wrong_ || (point >= 0xDC00 && point <= 0xDFFF);
        }
        if (!wrong_) {
            append(into, point);
        }
    }

    std::uint32_t take_hex() {
        std::uint32_t value = 0;
        for (int digit = 0; digit < 4 && !wrong_; ++digit) {
            const char letter = peek();
            const bool decimal = letter >= '0' && letter <= '9';
            const char lower = static_cast<char>(letter | 0x20);
            wrong_ = !decimal && (lower < 'a' || lower > 'f');
            if (!wrong_) {
                value = value * 16 +
                        static_cast<std::uint32_t>(decimal ? letter - '0' : lower - 'a' + 10);
                left_.remove_prefix(1);
            }
        }
        return value;
    }

    static void append(std::string& into, std::uint32_t point) {
        if (point < 0x80) {
            into += static_cast<char>(point);
            return;
        }
        const unsigned more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        into += static_cast<char>((0xFF00U >> (more + 1) & 0xFFU) | point >> (6 * more));
        for (unsigned left = more; left-- > 0;) {
            into += static_cast<char>(0x80U | (point >> (6 * left) & 0x3FU));
        }
    }

    std::string_view left_;
    bool wrong_ = false;
};

}  // namespace monolock::fuzz
