// Globs against a table of which beginnings of the pattern match which beginnings of the text, and
// an index of several patterns against trying each.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/glob.hpp"
#include "config/glob_index.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace config = monolock::config;
using monolock::fuzz::choices;
using monolock::fuzz::require;

// Few characters, of all lengths, so that much matches.
constexpr std::array<std::string_view, 11> alphabet{
    "a", "b", "*", "?", "*", "/", "\xC3\xBC", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x94\x92", "."};

using characters = std::vector<std::string_view>;

characters read_characters(choices& choose, std::size_t longest) {
    characters text(choose.next() % (longest + 1));
    for (std::string_view& each : text) {
        each = alphabet[choose.next() % alphabet.size()];
    }
    return text;
}

std::string joined(const characters& text) {
    std::string out;
    for (const std::string_view each : text) {
        out += each;
    }
    return out;
}

bool oracle(const characters& pattern, const characters& text) {
    std::vector<bool> reached(text.size() + 1, false);  // by the pattern's beginning so far
    reached[0] = true;
    for (const std::string_view each : pattern) {
        std::vector<bool> next(text.size() + 1, false);
        for (std::size_t at = 0; at <= text.size(); ++at) {
            if (each == "*") {
                next[at] = reached[at] || (at > 0 && next[at - 1]);
            } else {
                next[at] = at > 0 && reached[at - 1] && (each == "?" || each == text[at - 1]);
            }
        }
        reached = next;
    }
    return reached[text.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Whatever bytes these are: it ends, and touches nothing beyond them.
    const std::string_view whole{reinterpret_cast<const char*>(data), size};
    const std::size_t half = size / 2;
    static_cast<void>(config::matches_glob(whole.substr(0, half), whole.substr(half)));

    choices choose{data, size};
    const characters text = read_characters(choose, 20);
    std::vector<std::string> patterns;
    std::vector<bool> expected;
    while (choose.any() && patterns.size() < 8) {
        const characters pattern = read_characters(choose, 12);
        patterns.push_back(joined(pattern));
        expected.push_back(oracle(pattern, text));
        require(config::matches_glob(patterns.back(), joined(text)) == expected.back());
    }
    std::vector<bool> found(patterns.size(), false);
    config::glob_index{patterns}.any_match(joined(text), [&found](std::size_t place) {
        require(!found[place]);
        found[place] = true;
        return false;
    });
    require(found == expected);
    return 0;
}
