#include "load/crowd.hpp"

#include <algorithm>
#include <utility>

namespace monolock::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using stage = attempt::stage;

constexpr nanoseconds patience = 5s;  // the library's default, for connect and again for TLS
constexpr nanoseconds backoff_min = 100ms;
constexpr nanoseconds backoff_max = 5s;
constexpr nanoseconds nap_max = 20ms;

nanoseconds backoff(std::uint32_t failures) {
    const auto doublings = std::min<std::uint32_t>(failures - 1, 10);
    return std::min<nanoseconds>(backoff_min * (1U << doublings), backoff_max);
}

bool is_admitted(stage at) {
    return at == stage::waiting || at == stage::owning;
}

std::size_t endings::*counter_of(attempt::ending how) {
    switch (how) {
        case attempt::ending::refused:
            return &endings::refused;
        case attempt::ending::closed:
            return &endings::closed;
        case attempt::ending::told:
            return &endings::told;
        case attempt::ending::broken:
            break;
    }
    return &endings::broken;
}

}  // namespace

crowd::crowd(target to, const crowd_options& options)
    : to_{std::move(to)},
      options_{options},
      interval_{nanoseconds{options.lease} / 4},
      silence_max_{nanoseconds{options.lease} / 5 * 4},
      clients_(options.clients),
      jitter_{static_cast<std::minstd_rand::result_type>(options.first + 1)} {}

void crowd::start_all() {
    figures_.since = clock::now();
    for (std::size_t who = 0; who < clients_.size(); ++who) {
        begin(who);
    }
}

void crowd::start_in_turn() {
    figures_.since = clock::now();
    for (std::size_t who = 0; who < clients_.size(); ++who) {
        begin(who);
        while (clients_[who].claim.at() != stage::owning) {
            step();
            if (figures_.failed.total() + figures_.lost.total() > 0) {
                throw measurement_error("a session could not be opened, or ended meanwhile");
            }
        }
    }
    const auto start = clock::now();
    for (std::size_t who = 0; who < clients_.size(); ++who) {
        if (!clients_[who].in_flight) {
            clients_[who].due = start + interval_ * static_cast<std::int64_t>(who) /
                                            static_cast<std::int64_t>(clients_.size());
            arm(who, clients_[who].due);
        }
    }
}

void crowd::run_until(const std::function<bool()>& done) {
    while (!done()) {
        step();
    }
}

crowd_figures crowd::take_figures() {
    crowd_figures fresh;
    fresh.since = clock::now();
    return std::exchange(figures_, std::move(fresh));
}

void crowd::step() {
    nanoseconds nap = handshakes_.empty() ? nap_max : 0ms;
    drop_stale_timers();
    if (!timers_.empty()) {
        nap = std::min<nanoseconds>(nap, timers_.top().at - clock::now());
    }
    take_events(nap);
    ring_alarms();
    take_handshake_step();
}

void crowd::take_events(nanoseconds nap) {
    for (const auto& event : poller_.wait(nap)) {
        const auto who = poller::index_of(event);
        auto& one = clients_[who];
        if (one.claim.at() != stage::securing) {
            go_on(who, event.events);
        } else if (!one.step_due) {
            one.step_due = true;
            handshakes_.push_back(who);
        }
    }
}

void crowd::ring_alarms() {
    const auto now = clock::now();
    for (drop_stale_timers(); !timers_.empty() && timers_.top().at <= now; drop_stale_timers()) {
        const auto who = timers_.top().who;
        timers_.pop();
        ring(who);
    }
}

// The newest first: the oldest is the next that the server gives up, and in the order of arrival
// all would come too late once the line is longer than its patience. Who has ended meanwhile is
// passed over.
void crowd::take_handshake_step() {
    while (!handshakes_.empty()) {
        const auto who = handshakes_.back();
        handshakes_.pop_back();
        if (clients_[who].step_due) {
            go_on(who, 0);
            return;
        }
    }
}

void crowd::begin(std::size_t who) {
    clients_[who].begun = clock::now();
    clients_[who].failures = 0;
    try_to_claim(who);
}

void crowd::try_to_claim(std::size_t who) {
    auto& one = clients_[who];
    one.in_flight = false;
    one.step_due = false;
    one.claim = attempt{to_, options_.first + who, options_.lease};
    poller_.add_connecting(one.claim.fd(), who);
    ++figures_.attempts;
    arm(who, clock::now() + patience);
}

void crowd::go_on(std::size_t who, std::uint32_t events) {
    auto& one = clients_[who];
    one.step_due = false;
    const auto before = one.claim.at();
    // Taken before the advance that may send: the client must not believe that it sent later.
    const auto now = clock::now();
    const auto answers = one.claim.advance(to_, events);
    if (one.claim.at() != before) {
        note_progress(who, before, now);
    }
    if (answers > 0 && one.in_flight && one.claim.is_admitted()) {
        note_answer(who, clock::now());
    }
}

void crowd::note_progress(std::size_t who, stage before, clock::time_point now) {
    auto& one = clients_[who];
    switch (one.claim.at()) {
        case stage::none:
        case stage::connecting:
            break;
        case stage::securing:
            arm(who, now + patience);
            break;
        case stage::claiming:
            one.sent = one.confirmed = now;
            arm(who, now + silence_max_);
            break;
        case stage::waiting:
        case stage::owning:
            if (!is_admitted(before)) {
                if (before != stage::claiming) {  // all of it in one go
                    one.sent = one.confirmed = now;
                }
                one.due = one.sent + interval_;
                one.failures = 0;
                arm(who, one.due);
            }
            if (one.claim.at() == stage::owning) {
                ++owning_;
                figures_.grants.add(clock::now() - one.begun);
            }
            break;
        case stage::ended:
            note_end(who, before, counter_of(one.claim.how()));
            break;
    }
}

void crowd::note_answer(std::size_t who, clock::time_point now) {
    auto& one = clients_[who];
    one.in_flight = false;
    one.confirmed = one.sent;
    figures_.heartbeats.add(now - one.due);
    one.due += interval_;
    arm(who, one.due);
}

// An attempt came to nothing, or a session is over.
void crowd::note_end(std::size_t who, stage before, std::size_t endings::*how) {
    auto& one = clients_[who];
    owning_ -= before == stage::owning ? 1 : 0;
    one.alarm = {};
    one.in_flight = one.step_due = false;
    if (is_admitted(before)) {
        ++(figures_.lost.*how);
        if (options_.returns) {
            begin(who);
        }
        return;
    }
    ++(figures_.failed.*how);
    ++one.failures;
    std::uniform_real_distribution<double> share(0.5, 1.5);
    arm(who, clock::now() +
                 std::chrono::duration_cast<nanoseconds>(backoff(one.failures) * share(jitter_)));
}

void crowd::ring(std::size_t who) {
    auto& one = clients_[who];
    const auto at = one.claim.at();
    if (at == stage::none || at == stage::ended) {
        try_to_claim(who);
    } else if (is_admitted(at) && !one.in_flight) {
        beat(who);
    } else if (one.step_due) {  // the answer came in time, and is in line for this thread's
        arm(who, clock::now() + backoff_min);
    } else if (!answered_meanwhile(who)) {
        one.claim.close();
        note_end(who, at, &endings::timed_out);
    }
}

// What is in the socket counts, as it does in the library: with thousands of clients in one thread
// it may have been there for a while.
bool crowd::answered_meanwhile(std::size_t who) {
    const auto alarm = clients_[who].alarm;
    go_on(who, 0);
    return clients_[who].alarm != alarm;
}

void crowd::beat(std::size_t who) {
    auto& one = clients_[who];
    const auto before = one.claim.at();
    one.sent = clock::now();
    one.in_flight = true;
    one.claim.beat();
    if (one.claim.at() == stage::ended) {
        note_end(who, before, counter_of(one.claim.how()));
        return;
    }
    figures_.lags.add(one.sent - one.due);
    arm(who, one.confirmed + silence_max_);
}

void crowd::arm(std::size_t who, clock::time_point at) {
    clients_[who].alarm = at;
    timers_.push({.at = at, .who = who});
}

// A client has one alarm; arming it anew leaves the old entry where it is.
void crowd::drop_stale_timers() {
    while (!timers_.empty() && clients_[timers_.top().who].alarm != timers_.top().at) {
        timers_.pop();
    }
}

}  // namespace monolock::bench
