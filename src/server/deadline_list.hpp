#pragma once

#include <boost/intrusive/list.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "core/time.hpp"
#include "server/shard_loop.hpp"

namespace monolock::server {

// For objects that all have the same time to live: a list in the order of their deadlines and one
// timer, armed no more than once in that time however many come and go.
struct deadline_entry
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    core::time_point deadline;
};

template <class Entry>  // derived from deadline_entry
class deadline_list {
public:
    // `passed` is called with each entry whose deadline has passed; it must take it off the list.
    deadline_list(shard_loop& on, core::nanoseconds time_to_live,
                  std::function<void(Entry&)> passed)
        : timer_{on, [this] { turn(); }}, time_to_live_{time_to_live}, passed_{std::move(passed)} {}

    void add(Entry& entry) {
        entry.deadline = std::chrono::steady_clock::now() + time_to_live_;
        entries_.push_back(entry);
        if (!timer_.is_armed()) {
            timer_.arm(entries_.front().deadline);
        }
    }

    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] Entry& front() noexcept { return static_cast<Entry&>(entries_.front()); }

    // Calls `call` with each entry, which may leave the list in the call.
    template <class Call>
    void for_each(Call&& call) {
        for (auto at = entries_.begin(); at != entries_.end();) {
            call(static_cast<Entry&>(*at++));
        }
    }

private:
    static constexpr int batch_max = 64;

    // A few at a time: a crowd that came together goes together, and others want their turns in
    // between. For the rest the timer is armed anew and has passed already.
    void turn() {
        const core::time_point now = std::chrono::steady_clock::now();
        for (int done = 0; done < batch_max && !entries_.empty(); ++done) {
            if (entries_.front().deadline > now) {
                break;
            }
            passed_(front());
        }
        if (!entries_.empty()) {
            timer_.arm(entries_.front().deadline);
        }
    }

    boost::intrusive::list<deadline_entry, boost::intrusive::constant_time_size<false>> entries_;
    shard_loop::timer timer_;
    core::nanoseconds time_to_live_;
    std::function<void(Entry&)> passed_;
};

}  // namespace monolock::server
