#include "faults/impairment.hpp"

#include <algorithm>
#include <utility>

namespace monolock::faults {

void impairment::become(const impairments& how) {
    how_ = how;
    if (how_.cut) {
        counts_.cut += under_way_.size();
        under_way_ = {};
        last_in_order_ = instant{0};
    }
}

impairment::fate impairment::draw() {
    const instant jitter = random_.between(instant{0}, how_.jitter);
    return {.jitter = jitter, .overtaken = random_.chance(how_.overtaken)};
}

// A packet takes as many draws whatever comes of it, so that a cut does not change whom the losses
// after it hit.
void impairment::offer(packet what, instant now) {
    ++counts_.offered;
    const bool lost = random_.chance(how_.lost);
    const bool doubled = random_.chance(how_.doubled);
    const fate one = draw();
    const fate other = draw();
    if (how_.cut) {
        ++counts_.cut;
        return;
    }
    if (lost) {
        ++counts_.lost;
        return;
    }
    if (doubled) {
        ++counts_.doubled;
        send(what, other, now);
    }
    send(std::move(what), one, now);
}

void impairment::send(packet what, const fate& its, instant now) {
    if (under_way_.size() >= packets_max) {
        ++counts_.overflowed;
        return;
    }
    instant leaves = now + how_.delay + its.jitter;
    if (its.overtaken) {
        ++counts_.overtaken;
        leaves += how_.held_back;
    } else {
        leaves = std::max(leaves, last_in_order_);
        last_in_order_ = leaves;
    }
    under_way_.push({leaves, number_++, std::move(what)});
}

std::optional<instant> impairment::next_departure() const {
    return under_way_.empty() ? std::nullopt : std::optional{under_way_.top().leaves};
}

std::optional<packet> impairment::depart(instant now) {
    if (under_way_.empty() || under_way_.top().leaves > now) {
        return std::nullopt;
    }
    ++counts_.left;
    packet what = under_way_.top().what;
    under_way_.pop();
    return what;
}

}  // namespace monolock::faults
