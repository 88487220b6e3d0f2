#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/glob_index.hpp"

namespace monolock::config {

// One line of the access control list: whoever this identity matches may claim each lock that one
// of these patterns matches.
struct access_rule {
    std::string identity;
    std::vector<std::string> locks;
};

// Who may claim which lock. What no rule permits is denied; rules have no order and none denies.
// Never changes once made, so any number of threads may share it.
class access_rules {
public:
    // Denies everything.
    access_rules() = default;
    explicit access_rules(std::vector<access_rule> rules);

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    // Allocates nothing; fast with many rules (glob_index.hpp).
    [[nodiscard]] bool permits(std::string_view identity, std::string_view lock) const;

    // Why something is permitted: places in the file, counted from zero, and the patterns there.
    struct permission {
        std::size_t rule = 0;
        std::size_t pattern = 0;  // among the rule's locks
        std::string_view identity;
        std::string_view lock;
    };
    // The first rule in the file that permits this, and its first pattern; or nothing.
    [[nodiscard]] std::optional<permission> find(std::string_view identity,
                                                 std::string_view lock) const;

    friend bool operator==(const access_rules&, const access_rules&) = default;

private:
    // Where a pattern stands in the file.
    struct origin {
        std::uint32_t rule = 0;
        std::uint32_t pattern = 0;  // among the rule's locks

        friend auto operator<=>(const origin&, const origin&) = default;
    };
    // What the rules with one and the same identity permit together. Many rules for everybody, say,
    // are then one index and not many to be asked one by one.
    struct allowance {
        glob_index locks;
        std::vector<origin> origins;  // of the patterns in `locks`

        friend bool operator==(const allowance&, const allowance&) = default;
    };

    glob_index identities_;              // each once
    std::vector<allowance> allowances_;  // each at its identity's place
    std::size_t size_ = 0;
};

// "3 rules", for people.
[[nodiscard]] std::string describe(const access_rules& rules);

}  // namespace monolock::config
