#pragma once

#include <cstddef>

namespace monolock::simulation {

// Whether a table has a line for each enumerator up to `last`, in their order, so that one is found
// by its number.
template <class Invariants, class Rule>
[[nodiscard]] constexpr bool each_rule_has_its_line(const Invariants& all, Rule last) noexcept {
    for (std::size_t at = 0; at < all.size(); ++at) {
        if (all[at].is != static_cast<Rule>(at)) {
            return false;
        }
    }
    return all.back().is == last;
}

}  // namespace monolock::simulation
