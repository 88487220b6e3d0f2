#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <string>

#include "core/name_hash.hpp"
#include "core/session.hpp"

namespace monolock::core {

// A name with an owner and a queue. Exists only while it has either.
struct named_lock {
    using queue = boost::intrusive::list<
        session, boost::intrusive::member_hook<session, session::queue_hook, &session::queue_hook_>,
        boost::intrusive::constant_time_size<true>>;

    using idle_hook = boost::intrusive::list_member_hook<>;

    std::string name;
    name_hash hash;
    session* owner = nullptr;
    queue waiters;          // in the order of their ACQUIREs
    std::size_t place = 0;  // in lock_table::at
    idle_hook in_idle;      // among the locks that the token source refused to grant
};

}  // namespace monolock::core
