#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace monolock::fuzz {

// IP literals by their grammar (RFC 3986, section 3.2.2), without the C library.

inline bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

inline bool is_hex(char letter) {
    return is_digit(letter) || (letter >= 'a' && letter <= 'f') || (letter >= 'A' && letter <= 'F');
}

inline bool is_decimal_octet(std::string_view text) {
    if (text.empty() || text.size() > 3 || !std::ranges::all_of(text, is_digit) ||
        (text.size() > 1 && text[0] == '0')) {
        return false;
    }
    int value = 0;
    for (const char digit : text) {
        value = value * 10 + (digit - '0');
    }
    return value <= 255;
}

inline bool is_ipv4(std::string_view text) {
    for (int octet = 0; octet < 3; ++octet) {
        const std::size_t dot = text.find('.');
        if (dot == std::string_view::npos || !is_decimal_octet(text.substr(0, dot))) {
            return false;
        }
        text.remove_prefix(dot + 1);
    }
    return is_decimal_octet(text);
}

// How many groups of 16 bits the text is, separated by colons, the last perhaps an IPv4 literal;
// none if it is empty, -1 if it is something else.
inline int groups_of(std::string_view text, bool may_end_in_ipv4) {
    int groups = 0;
    while (!text.empty()) {
        const std::size_t colon = text.find(':');
        const std::string_view part = text.substr(0, colon);
        if (colon == std::string_view::npos && may_end_in_ipv4 && is_ipv4(part)) {
            return groups + 2;
        }
        if (part.empty() || part.size() > 4 || !std::ranges::all_of(part, is_hex)) {
            return -1;
        }
        ++groups;
        if (colon == std::string_view::npos) {
            return groups;
        }
        text.remove_prefix(colon + 1);
        if (text.empty()) {
            return -1;
        }
    }
    return groups;
}

inline bool is_ipv6(std::string_view text) {
    const std::size_t gap = text.find("::");
    if (gap == std::string_view::npos) {
        return groups_of(text, true) == 8;
    }
    const int before = groups_of(text.substr(0, gap), false);
    const int behind = groups_of(text.substr(gap + 2), true);
    return before >= 0 && behind >= 0 && before + behind <= 7;
}

// A decimal number up to that one, with any zeros before it.
inline bool is_number_up_to(std::string_view text, std::uint64_t most) {
    if (text.empty() || !std::ranges::all_of(text, is_digit)) {
        return false;
    }
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    std::array<char, 20> digits{};
    std::size_t size = 0;
    for (std::uint64_t left = most; left != 0; left /= 10) {
        digits[size++] = static_cast<char>('0' + left % 10);
    }
    std::reverse(digits.begin(), digits.begin() + size);
    const std::string_view bound{digits.data(), size};
    return text.size() < size || (text.size() == size && text <= bound);
}

}  // namespace monolock::fuzz
