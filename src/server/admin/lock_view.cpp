#include "server/admin/lock_view.hpp"

#include <algorithm>

#include "server/socket_session.hpp"

namespace monolock::server::admin {

claim_view view_of(const core::session& who) {
    const auto& session = static_cast<const socket_session&>(who);
    return {.id = who.id(),
            .identity = session.identity(),
            .peer = session.peer(),
            .since = who.since(),
            .last_seen = who.last_seen(),
            .lease = who.lease(),
            .token = who.token()};
}

lock_view view_of(const core::named_lock& lock, std::size_t waiters_max, core::time_point now) {
    lock_view made{.name = lock.name,
                   .taken_at = now,
                   .holder = {},
                   .waiters = {},
                   .waiters_total = lock.waiters.size()};
    if (lock.owner != nullptr) {
        made.holder = view_of(*lock.owner);
    }
    made.waiters.reserve(std::min(waiters_max, lock.waiters.size()));
    for (const core::session& waiter : lock.waiters) {
        if (made.waiters.size() == waiters_max) {
            break;
        }
        made.waiters.push_back(view_of(waiter));
    }
    return made;
}

}  // namespace monolock::server::admin
