#include "history/stories.hpp"

#include <algorithm>

namespace monolock::history {

namespace {

void open_window(windows& into, instant at) {
    if (into.empty() || into.back().until != never) {
        into.push_back({.from = at});
    }
}

void close_window(windows& into, instant at) {
    if (!into.empty() && into.back().until == never) {
        into.back().until = at;
    }
}

bool any_between(const std::vector<instant>& all, instant from, instant until) {
    const auto first = std::lower_bound(all.begin(), all.end(), from);
    return first != all.end() && *first <= until;
}

}  // namespace

instant story::believed_until() const noexcept {
    const instant by_duty = std::min(stopped_at(), confirmed_until);
    return last_act != nullptr ? std::max(by_duty, last_act->at) : by_duty;
}

bool any_overlaps(const windows& all, instant first, instant last) noexcept {
    return std::any_of(all.begin(), all.end(),
                       [&](const window& one) { return one.overlaps(first, last); });
}

const window* that_contains(const windows& all, instant at) noexcept {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const window& one) { return one.contains(at); });
    return found != all.end() ? &*found : nullptr;
}

stories::stories(std::span<const event> events) {
    all_.reserve(events.size() / 4);
    for (const event& what : events) {
        tell(what);
    }
    for (const story& one : all_) {
        by_lock_[one.lock].push_back(&one);
    }
}

void stories::tell(const event& what) {
    switch (what.what) {
        case kind::ask:
        case kind::waiting:
        case kind::grant:
        case kind::confirmed:
        case kind::act:
        case kind::loss:
        case kind::end:
        case kind::closed:
            of_claim(what);
            break;
        case kind::near:
            around_[what.claim.worker].near = true;
            break;
        case kind::paused:
            open_window(around_[what.claim.worker].paused, what.at);
            break;
        case kind::resumed:
            close_window(around_[what.claim.worker].paused, what.at);
            break;
        case kind::killed:
            around_[what.claim.worker].killed = &what;
            for (const std::size_t at : open_[what.claim.worker]) {
                all_[at].stop = &what;
            }
            open_[what.claim.worker].clear();
            break;
        case kind::silent:
            open_window(around_[what.claim.worker].silent, what.at);
            break;
        case kind::heard:
            close_window(around_[what.claim.worker].silent, what.at);
            break;
        case kind::resetting:
            open_window(around_[what.claim.worker].resetting, what.at);
            break;
        case kind::reset_over:
            close_window(around_[what.claim.worker].resetting, what.at);
            break;
        case kind::forcing:
            open_window(forced_[what.lock], what.at);
            break;
        case kind::forced_over:
            close_window(forced_[what.lock], what.at);
            break;
        case kind::server_down:
            restarts_.push_back(what.at);
            open_window(server_away_, what.at);
            open_window(server_ending_, what.at);
            break;
        case kind::server_started:
            restarts_.push_back(what.at);
            close_window(server_ending_, what.at);
            if (!what.wall_clock_right) {
                clock_set_.push_back(what.at);
            }
            break;
        case kind::server_paused:
            open_window(server_away_, what.at);
            break;
        case kind::server_serves:
            close_window(server_away_, what.at);
            break;
        case kind::calm:
            calm_ = what.at;
            break;
        case kind::finish:
            finish_ = what.at;
            break;
    }
}

void stories::of_claim(const event& what) {
    if (what.what == kind::ask) {
        const auto [at, is_new] = place_.try_emplace(what.claim, all_.size());
        if (!is_new) {
            contradict(all_[at->second], what, "asks twice");
            return;
        }
        all_.push_back({.id = what.claim, .lock = what.lock, .lease = what.lease, .ask = &what});
        auto& open = open_[what.claim.worker];
        if (const event* const killed = around(what.claim.worker).killed; killed != nullptr) {
            all_.back().stop = killed;
        } else {
            open.push_back(all_.size() - 1);
        }
        return;
    }
    const auto at = place_.find(what.claim);
    if (at == place_.end()) {
        contradictions_.push_back({&what, &what, "a claim that never asked"});
        return;
    }
    story& who = all_[at->second];
    // A process that is killed has been able to write until it was dead; what it wrote after the
    // harness noted the kill is cut off with it.
    if (who.stop != nullptr && who.stop->what == kind::killed) {
        return;
    }
    switch (what.what) {
        case kind::waiting:
            if (who.granted()) {
                contradict(who, what, "waits after its grant");
            }
            who.waiting = &what;
            break;
        case kind::grant:
            if (who.stop != nullptr) {
                contradict(who, what, "is granted after its end");
            } else if (who.granted() && who.grant->token != what.token) {
                contradict(who, what, "has two tokens");
            } else if (!who.granted()) {
                who.grant = &what;
                who.furthest = &what;
                who.confirmed = &what;
                who.confirmed_until = what.until;
            }
            break;
        case kind::confirmed:
            if (!who.granted()) {
                contradict(who, what, "is confirmed without a grant");
            } else if (who.stop == nullptr) {
                if (what.until > who.confirmed_until) {
                    who.confirmed = &what;
                    who.confirmed_until = what.until;
                }
                if (what.until - what.at > who.believes_for()) {
                    who.furthest = &what;
                }
            }
            break;
        case kind::act:
            if (!who.granted()) {
                contradict(who, what, "acts without a grant");
            } else {
                who.last_act = &what;
            }
            break;
        case kind::loss:
        case kind::end:
            stop(who, what);
            break;
        case kind::closed:
            if (who.stop == nullptr) {
                contradict(who, what, "has closed without an end");
            }
            who.closed = &what;
            break;
        case kind::ask:
        case kind::near:
        case kind::paused:
        case kind::resumed:
        case kind::killed:
        case kind::silent:
        case kind::heard:
        case kind::resetting:
        case kind::reset_over:
        case kind::forcing:
        case kind::forced_over:
        case kind::server_started:
        case kind::server_down:
        case kind::server_paused:
        case kind::server_serves:
        case kind::calm:
        case kind::finish:
            break;
    }
}

void stories::stop(story& who, const event& what) {
    if (who.stop != nullptr) {
        contradict(who, what, "ends twice");
        return;
    }
    who.stop = &what;
    auto& open = open_[who.id.worker];
    open.erase(std::find(open.begin(), open.end(), static_cast<std::size_t>(&who - all_.data())));
}

void stories::contradict(const story& who, const event& what, const char* how) {
    const event* before = who.stop != nullptr ? who.stop : who.granted() ? who.grant : who.ask;
    contradictions_.push_back({before, &what, how});
}

const surroundings& stories::around(std::uint32_t worker) const {
    static const surroundings nothing;
    const auto found = around_.find(worker);
    return found != around_.end() ? found->second : nothing;
}

bool stories::announced(const story& who, instant from, instant until) const {
    const surroundings& its = around(who.id.worker);
    if (any_overlaps(its.resetting, from, until) || restarted(from, until)) {
        return true;
    }
    return forced(who.lock, from, until);
}

bool stories::forced(std::uint32_t lock, instant from, instant until) const {
    const auto found = forced_.find(lock);
    return found != forced_.end() && any_overlaps(found->second, from, until);
}

bool stories::server_ending(instant from, instant until) const {
    return any_overlaps(server_ending_, from, until);
}

bool stories::stop_heard(const story& who) const {
    if (who.stop == nullptr) {
        return false;
    }
    const surroundings& its = around(who.id.worker);
    const bool broke = who.stop->what == kind::loss && who.stop->why == reason::closed;
    const instant since = broke ? who.ask->at : who.stop->at;
    return that_contains(its.silent, who.stop->at) == nullptr &&
           !any_overlaps(its.resetting, since, who.stop->at);
}

bool stories::server_away(instant from, instant until) const {
    return any_overlaps(server_away_, from, until);
}

bool stories::restarted(instant from, instant until) const {
    return any_between(restarts_, from, until);
}

bool stories::clock_set(instant from, instant until) const {
    return any_between(clock_set_, from, until);
}

}  // namespace monolock::history
