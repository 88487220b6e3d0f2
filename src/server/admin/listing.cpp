#include "server/admin/listing.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "server/http/target.hpp"

namespace monolock::server::admin {

namespace {

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

// By name, and each name once: of a name that a shard met twice, as it was last seen.
void sort_by_name(std::vector<lock_view>& found) {
    std::sort(found.begin(), found.end(), [](const lock_view& left, const lock_view& right) {
        return left.name != right.name ? left.name < right.name : left.taken_at > right.taken_at;
    });
    found.erase(std::unique(found.begin(), found.end(),
                            [](const lock_view& left, const lock_view& right) {
                                return left.name == right.name;
                            }),
                found.end());
}

// Whether the left one stands before the right one; neither, of locks that only their names tell
// apart.
bool precedes(listing_order by, const lock_view& left, const lock_view& right) noexcept {
    switch (by) {
        case listing_order::name:
            return false;
        case listing_order::waiters:
            return left.waiters_total > right.waiters_total;
        case listing_order::held:
            break;
    }
    if (!left.holder || !right.holder) {
        return left.holder.has_value() && !right.holder;
    }
    return left.holder->since < right.holder->since;
}

// Places in a listing by name, of which the first `count` are in order. Places are what moves: a
// lock is large.
std::vector<std::uint32_t> places_by(listing_order by, const std::vector<lock_view>& locks,
                                     std::size_t count) {
    std::vector<std::uint32_t> places(locks.size());
    std::iota(places.begin(), places.end(), 0U);
    if (by == listing_order::name) {
        return places;
    }
    std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                      places.end(), [&](std::uint32_t left, std::uint32_t right) {
                          if (precedes(by, locks[left], locks[right])) {
                              return true;
                          }
                          return !precedes(by, locks[right], locks[left]) && left < right;
                      });
    return places;
}

}  // namespace

std::size_t listing::behind(std::string_view name) const noexcept {
    const auto first = std::upper_bound(
        locks.begin(), locks.end(), name,
        [](std::string_view left, const lock_view& right) { return left < right.name; });
    return static_cast<std::size_t>(first - locks.begin());
}

std::shared_ptr<const listing> make_listing(std::uint64_t id, std::optional<std::string> match,
                                            const moment& taken, std::vector<lock_view> found) {
    sort_by_name(found);
    listing made{.id = id, .match = std::move(match), .taken = taken, .locks = std::move(found)};
    for (const lock_view& each : made.locks) {
        made.claims += 1 + each.waiters.size();
    }
    return std::make_shared<const listing>(std::move(made));
}

std::shared_ptr<const listing> kept_listings::keep(std::shared_ptr<const listing> made) {
    forget_old(made->taken.steady);
    if (!has_room_for(*made)) {
        const auto other = newest(made->match);
        if (other != kept_.end() && made->taken.steady - (*other)->taken.steady <= shared_age_max) {
            return read(other);
        }
    }
    while (!has_room_for(*made)) {
        drop(kept_.begin());
    }
    claims_ += made->claims;
    return kept_.emplace_back(std::move(made));
}

bool kept_listings::has_room_for(const listing& another) const noexcept {
    return kept_.size() < count_min ||
           (kept_.size() < count_max && claims_ + another.claims <= claims_max_);
}

std::shared_ptr<const listing> kept_listings::find(std::uint64_t id, core::time_point now) {
    forget_old(now);
    return read(
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each->id == id; }));
}

std::shared_ptr<const listing> kept_listings::find(const std::optional<std::string>& match,
                                                   core::time_point now) {
    forget_old(now);
    return read(newest(match));
}

kept_listings::listings::iterator kept_listings::newest(const std::optional<std::string>& match) {
    auto found = kept_.end();
    for (auto each = kept_.begin(); each != kept_.end(); ++each) {
        if ((*each)->match == match && (found == kept_.end() || (*each)->id > (*found)->id)) {
            found = each;
        }
    }
    return found;
}

std::shared_ptr<const listing> kept_listings::read(listings::iterator found) {
    if (found == kept_.end()) {
        return nullptr;
    }
    std::rotate(found, std::next(found), kept_.end());
    return kept_.back();
}

void kept_listings::drop(listings::iterator which) {
    claims_ -= (*which)->claims;
    kept_.erase(which);
}

void kept_listings::forget_old(core::time_point now) {
    std::erase_if(kept_, [&](const auto& each) {
        const bool old = now - each->taken.steady > age_max;
        claims_ -= old ? each->claims : 0;
        return old;
    });
}

listing_page page_of(const listing& from, const list_call& what) {
    listing_page made;
    made.begin = what.after ? from.behind(*what.after) : 0;
    const std::size_t left = from.locks.size() - made.begin;
    made.end = made.begin + std::min(left, what.limit.value_or(left));
    if (made.end < from.locks.size()) {
        made.next = "/api/locks?limit=" + std::to_string(*what.limit) +
                    "&snapshot=" + std::to_string(from.id) +
                    "&after=" + http::percent_encoded(from.locks[made.end - 1].name);
        if (what.match) {
            made.next += "&match=" + http::percent_encoded(*what.match);
        }
    }
    return made;
}

listing_window make_window(const window_call& what, const moment& taken,
                           std::vector<lock_view> found) {
    sort_by_name(found);
    const std::size_t begin = std::min(what.from, found.size());
    const std::size_t end = begin + std::min(what.limit, found.size() - begin);
    const std::vector<std::uint32_t> places = places_by(what.sort, found, end);
    listing shown{.id = 0, .match = what.match, .taken = taken, .locks = {}, .claims = 0};
    for (std::size_t index = begin; index < end; ++index) {
        shown.locks.push_back(std::move(found[places[index]]));
    }
    return {.shown = std::make_shared<const listing>(std::move(shown)), .total = found.size()};
}

listing_pages::listing_pages(listing_window window)
    : from_{std::move(window.shown)}, at_{0}, end_{from_->locks.size()}, total_{window.total} {}

listing_pages::listing_pages(std::shared_ptr<const listing> from, listing_page page)
    : from_{std::move(from)}, at_{page.begin}, end_{page.end}, next_{std::move(page.next)} {}

std::optional<std::string> listing_pages::piece() {
    if (stage_ == stage::done) {
        return std::nullopt;
    }
    std::string out;
    if (stage_ == stage::opening) {
        out = "{\"locks\":[";
        stage_ = stage::locks;
    } else {
        out = ",";
    }
    while (at_ != end_) {
        append_lock(out, from_->locks[at_++], from_->taken);
        if (at_ == end_) {
            break;
        }
        if (out.size() >= piece_bytes) {
            return out;
        }
        out += ',';
    }
    out += ']';
    if (!next_.empty()) {
        out += ',';
        append_text(out, "next", next_);
    }
    if (total_) {
        out += ',';
        append_number(out, "total", *total_);
    }
    out += "}\n";
    stage_ = stage::done;
    return out;
}

}  // namespace monolock::server::admin
