#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/admin/api_call.hpp"
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
    std::size_t claims = 0;        // locks and waiters: what it takes of memory

    // The place of the first lock whose name is greater.
    [[nodiscard]] std::size_t behind(std::string_view name) const noexcept;
};

// Of what the shards found. A name that a shard met twice is kept as it was last seen.
[[nodiscard]] std::shared_ptr<const listing> make_listing(std::uint64_t id,
                                                          std::optional<std::string> match,
                                                          const moment& taken,
                                                          std::vector<lock_view> found);

// The listings that pages are read from, each for a bounded time. A few there may always be, more
// only within a bound on the claims of all: those that were read least recently make room.
class kept_listings {
public:
    static constexpr std::size_t count_min = 4;
    static constexpr std::size_t count_max = 1'000;
    static constexpr std::size_t claims_max = 500'000;
    static constexpr std::chrono::seconds age_max{60};
    static constexpr std::chrono::seconds shared_age_max{1};

    explicit kept_listings(std::size_t claims_at_most = claims_max) : claims_max_{claims_at_most} {}

    // Gives the one to read: what was made, or rather than make others go, one of the same match
    // that is a little older.
    [[nodiscard]] std::shared_ptr<const listing> keep(std::shared_ptr<const listing> made);

    // The one with this id, or else the newest with this match; null if it is not kept any more.
    [[nodiscard]] std::shared_ptr<const listing> find(std::uint64_t id, core::time_point now);
    [[nodiscard]] std::shared_ptr<const listing> find(const std::optional<std::string>& match,
                                                      core::time_point now);

    void forget_old(core::time_point now);
    [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }

private:
    using listings = std::vector<std::shared_ptr<const listing>>;

    [[nodiscard]] bool has_room_for(const listing& another) const noexcept;
    [[nodiscard]] listings::iterator newest(const std::optional<std::string>& match);
    [[nodiscard]] std::shared_ptr<const listing> read(listings::iterator found);
    void drop(listings::iterator which);

    std::size_t claims_max_;
    std::size_t claims_ = 0;  // of all that are kept
    listings kept_;           // those that were read last are last
};

// Which locks of a listing a call is shown, [begin, end), and the target of the request for those
// behind them; empty if there are none.
struct listing_page {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string next;
};
[[nodiscard]] listing_page page_of(const listing& from, const list_call& what);

// Which of the locks that the shards found a window shows, and of how many in all.
struct listing_window {
    std::shared_ptr<const listing> shown;
    std::size_t total = 0;
};
[[nodiscard]] listing_window make_window(const window_call& what, const moment& taken,
                                         std::vector<lock_view> found);

// The locks of a page as JSON, piece by piece, so that no response is in memory as a whole.
class listing_pages {
public:
    listing_pages(std::shared_ptr<const listing> from, listing_page page);
    explicit listing_pages(listing_window window);

    // The next piece, or nothing.
    [[nodiscard]] std::optional<std::string> piece();

private:
    std::shared_ptr<const listing> from_;
    std::size_t at_;
    std::size_t end_;
    std::string next_;
    std::optional<std::size_t> total_;
    enum class stage { opening, locks, done } stage_ = stage::opening;
};

}  // namespace monolock::server::admin
