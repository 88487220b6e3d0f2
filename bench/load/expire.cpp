// The mode expire: sessions fall silent, and how late their end comes.

#include <algorithm>
#include <utility>
#include <vector>

#include "load/attempt.hpp"
#include "load/modes.hpp"
#include "load/poller.hpp"

namespace monolock::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using stage = attempt::stage;

constexpr nanoseconds silence_max = 10s;

class silent_sessions {
public:
    silent_sessions(target to, const expire_options& options)
        : to_{std::move(to)}, options_{options}, sessions_(options.sessions) {
        for (std::size_t who = 0; who < sessions_.size(); ++who) {
            open(sessions_[who].owner, who, options_.lease, stage::owning);
        }
        for (std::size_t who = 0; options_.heirs && who < sessions_.size(); ++who) {
            open(sessions_[who].heir, who, std::chrono::milliseconds{lease_ms}, stage::waiting);
        }
    }

    void beat_once_more() {
        const auto start = clock::now();
        for (std::size_t who = 0; who < sessions_.size(); ++who) {
            const auto due = start + options_.spread * static_cast<std::int64_t>(who) /
                                         static_cast<std::int64_t>(sessions_.size());
            do {
                static_cast<void>(take_events(due - clock::now()));
            } while (clock::now() < due);
            auto& one = sessions_[who];
            one.sent = clock::now();
            one.owner.beat();
        }
    }

    [[nodiscard]] expire_result wait_for_the_end() {
        while (result_.late_at_most.count() < sessions_.size()) {
            take_events_that_must_come();
        }
        return std::move(result_);
    }

private:
    struct session {
        attempt owner;
        attempt heir;
        clock::time_point sent;  // the last heartbeat
        clock::time_point answered;
    };

    void open(attempt& claim, std::size_t who, std::chrono::milliseconds lease, stage wanted) {
        claim = attempt{to_, who, lease};
        poller_.add_connecting(claim.fd(), &claim == &sessions_[who].heir ? who + heirs_from : who);
        while (claim.at() != wanted) {
            take_events_that_must_come();
        }
    }

    void take_events_that_must_come() {
        if (!take_events(silence_max + options_.lease)) {
            throw measurement_error("the server has stopped answering, or a session never ends");
        }
    }

    // Whether there were any.
    bool take_events(nanoseconds patience) {
        const auto events = poller_.wait(patience);
        for (const auto& event : events) {
            const auto index = poller::index_of(event);
            if (index < heirs_from) {
                take_owner_event(sessions_[index], event.events);
            } else {
                take_heir_event(sessions_[index - heirs_from], event.events);
            }
        }
        return !events.empty();
    }

    void take_owner_event(session& one, std::uint32_t events) {
        const auto answers = one.owner.advance(to_, events);
        const auto now = clock::now();
        if (answers > 0) {
            one.answered = now;
        }
        if (one.owner.at() == stage::ended) {
            const bool silent = one.owner.how() == attempt::ending::closed;
            if (!silent || one.answered < one.sent || one.sent == clock::time_point{}) {
                throw measurement_error("a session ended otherwise than by its silence");
            }
            if (!options_.heirs) {
                note_end(one, now);
            }
        }
    }

    void take_heir_event(session& one, std::uint32_t events) {
        const auto before = one.heir.at();
        static_cast<void>(one.heir.advance(to_, events));
        const auto after = one.heir.at();
        if (before == stage::waiting && after == stage::owning) {
            note_end(one, clock::now());
        } else if (after == stage::ended) {
            throw measurement_error("a waiter ended");
        }
    }

    void note_end(const session& one, clock::time_point now) {
        const auto late_at_most = now - (one.sent + options_.lease);
        const auto late_at_least = now - (one.answered + options_.lease);
        result_.early += late_at_most < 0ns ? 1U : 0U;
        result_.late_at_most.add(late_at_most);
        result_.late_at_least.add(std::max<nanoseconds>(late_at_least, 0ns));
    }

    static constexpr std::size_t heirs_from = std::size_t{1} << 32;

    target to_;
    expire_options options_;
    poller poller_;
    std::vector<session> sessions_;
    expire_result result_;
};

}  // namespace

expire_result run_expire(const target& to, const expire_options& options) {
    silent_sessions sessions(to, options);
    const auto cpu_before = to.process.cpu_time();
    sessions.beat_once_more();
    auto result = sessions.wait_for_the_end();
    result.server_cpu = to.process.settled_cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
