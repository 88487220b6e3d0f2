#include "config/glob_index.hpp"

#include <algorithm>
#include <utility>

namespace monolock::config {

glob_index::glob_index(std::vector<std::string> patterns) : patterns_{std::move(patterns)} {
    by_prefix_.reserve(patterns_.size());
    for (const std::string& pattern : patterns_) {
        const auto length = static_cast<std::uint32_t>(literal_prefix(pattern).size());
        by_prefix_.push_back(
            {.place = static_cast<std::uint32_t>(by_prefix_.size()), .prefix_length = length});
        prefix_lengths_.push_back(length);
    }
    std::ranges::sort(by_prefix_, {}, [this](const entry& each) { return prefix_of(each); });
    std::ranges::sort(prefix_lengths_);
    prefix_lengths_.erase(std::unique(prefix_lengths_.begin(), prefix_lengths_.end()),
                          prefix_lengths_.end());
    prefix_lengths_.shrink_to_fit();
}

std::span<const glob_index::entry> glob_index::with_prefix(std::string_view prefix) const noexcept {
    const auto projection = [this](const entry& each) { return prefix_of(each); };
    const auto begin = std::ranges::lower_bound(by_prefix_, prefix, {}, projection);
    const auto end = std::ranges::upper_bound(begin, by_prefix_.end(), prefix, {}, projection);
    return {begin, end};
}

}  // namespace monolock::config
