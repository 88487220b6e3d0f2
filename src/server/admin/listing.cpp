#include "server/admin/listing.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::server::admin {

namespace {

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

}  // namespace

std::size_t listing::behind(std::string_view name) const noexcept {
    const auto first = std::upper_bound(
        locks.begin(), locks.end(), name,
        [](std::string_view left, const lock_view& right) { return left < right.name; });
    return static_cast<std::size_t>(first - locks.begin());
}

std::shared_ptr<const listing> make_listing(std::uint64_t id, std::optional<std::string> match,
                                            const moment& taken, std::vector<lock_view> found) {
    std::sort(found.begin(), found.end(), [](const lock_view& left, const lock_view& right) {
        return left.name != right.name ? left.name < right.name : left.taken_at > right.taken_at;
    });
    found.erase(std::unique(found.begin(), found.end(),
                            [](const lock_view& left, const lock_view& right) {
                                return left.name == right.name;
                            }),
                found.end());
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

listing_pages::listing_pages(std::shared_ptr<const listing> from, std::size_t begin,
                             std::size_t end, std::string next)
    : from_{std::move(from)}, at_{begin}, end_{end}, next_{std::move(next)} {}

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
    out += "}\n";
    stage_ = stage::done;
    return out;
}

}  // namespace monolock::server::admin
