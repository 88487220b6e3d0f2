#include "simulation/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace monolock::simulation {

void event_queue::at(sim_time when, action what) {
    heap_.push_back({.when = std::max(when, now_), .number = made_++, .what = std::move(what)});
    std::push_heap(heap_.begin(), heap_.end(), later);
}

bool event_queue::run_next(sim_time until) {
    if (heap_.empty() || heap_.front().when > until) {
        now_ = std::max(now_, until);
        return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const event next = std::move(heap_.back());
    heap_.pop_back();
    now_ = std::max(now_, next.when);
    ++step_;
    next.what();
    if (after_each_) {
        after_each_();
    }
    return true;
}

}  // namespace monolock::simulation
