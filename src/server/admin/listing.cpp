#include "server/admin/listing.hpp"

#include <algorithm>
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
    return std::make_shared<const listing>(
        listing{.id = id, .match = std::move(match), .taken = taken, .locks = std::move(found)});
}

void kept_listings::keep(std::shared_ptr<const listing> made) {
    if (kept_.size() == count_max) {
        kept_.pop_front();
    }
    kept_.push_back(std::move(made));
}

std::shared_ptr<const listing> kept_listings::find(std::uint64_t id, core::time_point now) {
    forget_old(now);
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each->id == id; });
    return found == kept_.end() ? nullptr : *found;
}

std::shared_ptr<const listing> kept_listings::find(const std::optional<std::string>& match,
                                                   core::time_point now) {
    forget_old(now);
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(),
                                    [&](const auto& each) { return each->match == match; });
    return found == kept_.rend() ? nullptr : *found;
}

void kept_listings::forget_old(core::time_point now) {
    while (!kept_.empty() && now - kept_.front()->taken.steady > age_max) {
        kept_.pop_front();
    }
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
