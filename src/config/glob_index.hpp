#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/glob.hpp"

namespace monolock::config {

// A list of patterns that finds those which match a text without trying them all: it tries only
// patterns whose literal prefix the text begins with. A look-up costs a binary search for each
// length that a prefix has, and allocates nothing. Never changes once made.
class glob_index {
public:
    glob_index() = default;
    explicit glob_index(std::vector<std::string> patterns);

    [[nodiscard]] std::span<const std::string> patterns() const noexcept { return patterns_; }

    // Calls visit(place in patterns()) for each pattern that matches, in no order of meaning, until
    // a call returns true; whether one did.
    template <std::predicate<std::size_t> Visitor>
    bool any_match(std::string_view text, Visitor visit) const {
        for (const std::size_t length : prefix_lengths_) {
            if (length > text.size()) {
                break;
            }
            for (const entry& each : with_prefix(text.substr(0, length))) {
                if (matches_glob(patterns_[each.place], text) && visit(std::size_t{each.place})) {
                    return true;
                }
            }
        }
        return false;
    }

    friend bool operator==(const glob_index& left, const glob_index& right) noexcept {
        return left.patterns_ == right.patterns_;
    }

private:
    struct entry {
        std::uint32_t place = 0;
        std::uint32_t prefix_length = 0;
    };

    [[nodiscard]] std::string_view prefix_of(const entry& each) const noexcept {
        return std::string_view{patterns_[each.place]}.substr(0, each.prefix_length);
    }
    [[nodiscard]] std::span<const entry> with_prefix(std::string_view prefix) const noexcept;

    std::vector<std::string> patterns_;
    std::vector<entry> by_prefix_;               // ordered by prefix
    std::vector<std::uint32_t> prefix_lengths_;  // each once, ascending
};

}  // namespace monolock::config
