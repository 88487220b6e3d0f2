#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/admin/api_json.hpp"
#include "server/admin/lock_view.hpp"

namespace monolock::server::admin {

// All locks that matched, at about one moment, by name. Not changed once it is made, and kept alive
// by whoever still reads it.
struct listing {
    std::uint64_t id = 0;
    std::optional<std::string> match;
    moment taken;
    std::vector<lock_view> locks;  // sorted, each name once

    // The place of the first lock whose name is greater.
    [[nodiscard]] std::size_t behind(std::string_view name) const noexcept;
};

// Of what the shards found. A name that a shard met twice is kept as it was last seen.
[[nodiscard]] std::shared_ptr<const listing> make_listing(std::uint64_t id,
                                                          std::optional<std::string> match,
                                                          const moment& taken,
                                                          std::vector<lock_view> found);

// The listings that pages are read from: the newest few, each for a bounded time.
class kept_listings {
public:
    static constexpr std::size_t count_max = 4;
    static constexpr std::chrono::seconds age_max{60};

    void keep(std::shared_ptr<const listing> made);

    // The one with this id, or else the newest with this match; null if it is not kept any more.
    [[nodiscard]] std::shared_ptr<const listing> find(std::uint64_t id, core::time_point now);
    [[nodiscard]] std::shared_ptr<const listing> find(const std::optional<std::string>& match,
                                                      core::time_point now);

    void forget_old(core::time_point now);
    [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }

private:
    std::deque<std::shared_ptr<const listing>> kept_;  // the oldest first
};

// The locks of a page as JSON, piece by piece, so that no response is in memory as a whole.
class listing_pages {
public:
    // From `begin` up to `end`. With a limit, more pages may follow: then `next` is where.
    listing_pages(std::shared_ptr<const listing> from, std::size_t begin, std::size_t end,
                  std::string next);

    // The next piece, or nothing.
    [[nodiscard]] std::optional<std::string> piece();

private:
    std::shared_ptr<const listing> from_;
    std::size_t at_;
    std::size_t end_;
    std::string next_;
    enum class stage { opening, locks, done } stage_ = stage::opening;
};

}  // namespace monolock::server::admin
