#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/admin/api_call.hpp"
#include "server/admin/lock_view.hpp"
#include "server/shard.hpp"

namespace monolock::server::admin {

// Looks at every lock of one shard, a slice in each turn of its loop, so that heartbeats have their
// turn in between whatever the shard holds. Locks that come or go meanwhile may be in it or not;
// those that stay are, perhaps twice.
class survey : public std::enable_shared_from_this<survey> {
public:
    // Called on the shard's thread.
    using receiver = std::function<void(std::vector<lock_view>)>;

    // What is of interest: names that match the glob (absent: all), and of each lock so many
    // waiters.
    struct interest {
        std::optional<std::string> match;
        std::size_t waiters_max = listed_waiters_max;
    };

    // To be called on the shard's thread.
    static void begin(shard& on, interest what, receiver done);

    survey(shard& on, interest what, receiver done)
        : shard_{&on}, what_{std::move(what)}, done_{std::move(done)} {}

private:
    void begin_slice();
    void slice();

    shard* shard_;
    interest what_;
    receiver done_;
    std::size_t place_ = 0;  // those below it have not been looked at
    std::vector<lock_view> found_;
};

// One lock with its queue, or the first of it, again in slices. Waiters that leave meanwhile may be
// in it or not; the owner is that of the last moment, and is not among the waiters.
class inspection : public std::enable_shared_from_this<inspection> {
public:
    // Called on the shard's thread; nothing if there is no such lock.
    using receiver = std::function<void(std::optional<lock_view>)>;

    struct interest {
        std::string name;
        core::name_hash hash;
        std::size_t waiters_max = std::numeric_limits<std::size_t>::max();
    };

    // To be called on the thread of that name's shard.
    static void begin(shard& on, interest what, receiver done);

    inspection(shard& on, interest what, receiver done)
        : shard_{&on}, what_{std::move(what)}, done_{std::move(done)} {}

private:
    void begin_slice();
    void slice();
    [[nodiscard]] core::named_lock::queue::const_iterator resume(
        const core::named_lock& lock) const;
    void finish(const core::named_lock& lock, core::time_point now);

    shard* shard_;
    interest what_;
    receiver done_;
    std::optional<lock_view> seen_;
    boost::intrusive_ptr<const socket_session> last_;  // of the waiters seen
};

}  // namespace monolock::server::admin
