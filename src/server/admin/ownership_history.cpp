#include "server/admin/ownership_history.hpp"

#include <algorithm>
#include <variant>

#include "server/socket_session.hpp"

namespace monolock::server::admin {

void ownership_history::take(const core::fact& what) {
    if (const auto* const grant = std::get_if<core::granted>(&what)) {
        ownership_change& change = place_for(*grant->who);
        change.what = ownership_change::kind::granted;
        change.token = grant->token;
        change.at = grant->who->since();
        change.lasted = grant->waited;
    } else if (const auto* const end = std::get_if<core::ended>(&what);
               end != nullptr && end->was == core::session_state::owning) {
        ownership_change& change = place_for(*end->who);
        change.what = ownership_change::kind::released;
        change.reason = end->why;
        change.token = end->who->token();
        change.at = end->who->since() + end->lasted;
        change.lasted = end->lasted;
    }
}

ownership_change& ownership_history::place_for(const core::session& who) {
    const std::size_t index = next_ % capacity;
    if (index == ring_.size()) {
        ring_.emplace_back();
    }
    const auto& session = static_cast<const socket_session&>(who);
    ownership_change& change = ring_[index];
    change.number = next_++;
    change.id = who.id();
    change.peer = session.peer();
    change.lock = who.lock_name();
    change.identity = session.identity();
    return change;
}

std::vector<ownership_change> ownership_history::of(std::string_view lock,
                                                    std::size_t count) const {
    std::vector<ownership_change> found;
    for (std::uint64_t number = next_; number > first() && found.size() < count;) {
        if (at(--number).lock == lock) {
            found.push_back(at(number));
        }
    }
    std::reverse(found.begin(), found.end());
    return found;
}

std::vector<ownership_change> ownership_history::since(std::uint64_t number,
                                                       std::size_t count) const {
    std::vector<ownership_change> found;
    number = std::max({number, first(), next_ - std::min<std::uint64_t>(next_, count)});
    for (; number < next_; ++number) {
        found.push_back(at(number));
    }
    return found;
}

}  // namespace monolock::server::admin
