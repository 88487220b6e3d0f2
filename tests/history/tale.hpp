#pragma once

#include <algorithm>
#include <vector>

#include "history/check.hpp"

namespace monolock::history {

// A history made up by a test, in milliseconds. The lease is a second unless told otherwise.
class tale {
public:
    tale& ask(claim_id who, int at, int lease = 1000, std::uint32_t lock = 0) {
        return add(
            {.at = ms(at), .what = kind::ask, .claim = who, .lock = lock, .lease = ms(lease)});
    }
    tale& waiting(claim_id who, int at) {
        return add({.at = ms(at), .what = kind::waiting, .claim = who});
    }
    tale& grant(claim_id who, int at, std::uint64_t token, int until) {
        return add(
            {.at = ms(at), .what = kind::grant, .claim = who, .token = token, .until = ms(until)});
    }
    tale& confirmed(claim_id who, int at, int until) {
        return add({.at = ms(at), .what = kind::confirmed, .claim = who, .until = ms(until)});
    }
    tale& act(claim_id who, int at) { return add({.at = ms(at), .what = kind::act, .claim = who}); }
    tale& end(claim_id who, int at) { return add({.at = ms(at), .what = kind::end, .claim = who}); }
    tale& closed(claim_id who, int at) {
        return add({.at = ms(at), .what = kind::closed, .claim = who});
    }
    tale& loss(claim_id who, int at, reason why = reason::silence) {
        return add({.at = ms(at), .what = kind::loss, .why = why, .claim = who});
    }
    tale& worker(kind what, std::uint32_t worker, int at) {
        return add({.at = ms(at), .what = what, .claim = {worker, 0}});
    }
    tale& run(kind what, int at) { return add({.at = ms(at), .what = what}); }
    tale& clock_was_set_before_start(int at) {
        return add({.at = ms(at), .what = kind::server_started, .wall_clock_right = false});
    }

    [[nodiscard]] report check(settings limits = {}) const {
        auto sorted = events_;
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const event& left, const event& right) { return left.at < right.at; });
        return history::check(sorted, limits);
    }

    static constexpr instant ms(int count) { return std::chrono::milliseconds{count}; }

private:
    tale& add(const event& what) {
        events_.push_back(what);
        return *this;
    }

    std::vector<event> events_;
};

}  // namespace monolock::history
