#include "config/glob.hpp"

#include <cstddef>

namespace monolock::config {

namespace {

constexpr std::size_t nowhere = std::string_view::npos;

// The index of the character behind the one at `at`.
std::size_t next_character(std::string_view text, std::size_t at) noexcept {
    constexpr auto is_continuation = [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
    };
    ++at;
    while (at < text.size() && is_continuation(text[at])) {
        ++at;
    }
    return at;
}

constexpr bool is_wildcard(char letter) noexcept {
    return letter == '*' || letter == '?';
}

}  // namespace

// Only the last star met is ever taken back: what stands before it has matched in the leftmost way,
// and no other way leaves more of the text to what follows. That is why no input costs exponential
// time.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept {
    // The literal end first, for speed: of many patterns like "*-import" most are out at once.
    while (!pattern.empty() && !is_wildcard(pattern.back())) {
        if (text.empty() || text.back() != pattern.back()) {
            return false;
        }
        pattern.remove_suffix(1);
        text.remove_suffix(1);
    }
    std::size_t in_pattern = 0;
    std::size_t in_text = 0;
    std::size_t behind_star = nowhere;  // in the pattern
    std::size_t star_end = 0;           // where in the text the run of that star ends for now
    while (in_text < text.size()) {
        const bool more = in_pattern < pattern.size();
        if (more && pattern[in_pattern] == '*') {
            behind_star = ++in_pattern;
            star_end = in_text;
        } else if (more && pattern[in_pattern] == '?') {
            ++in_pattern;
            in_text = next_character(text, in_text);
        } else if (more && pattern[in_pattern] == text[in_text]) {
            ++in_pattern;
            ++in_text;
        } else if (behind_star != nowhere) {
            star_end = next_character(text, star_end);
            in_pattern = behind_star;
            in_text = star_end;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', in_pattern) == nowhere;
}

std::string_view literal_prefix(std::string_view pattern) noexcept {
    return pattern.substr(0, pattern.find_first_of("*?"));
}

}  // namespace monolock::config
