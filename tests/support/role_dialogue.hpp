#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>

#include "coordination/role_machine.hpp"

// A role machine and the store it talks to, for tests that are written as a dialogue.
namespace monolock::coordination {

// What gtest prints when a dialogue goes another way.
inline void PrintTo(role one, std::ostream* out) {
    *out << to_string(one);
}
inline void PrintTo(time_point when, std::ostream* out) {
    *out << std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count()
         << " us";
}
inline void PrintTo(const token_range& tokens, std::ostream* out) {
    *out << tokens.first << " up to " << tokens.ceiling;
}

inline constexpr std::uint64_t window = std::uint64_t{16'000} << 10U;  // of a TTL of 4 s
inline constexpr std::uint64_t first_ceiling = (std::uint64_t{1000} << 10U) + window;
inline constexpr lease_id lease_of_mine{77};

inline time_point at(nanoseconds since_start) {
    return time_point{std::chrono::hours{1} + since_start};
}

inline active_entry somebody(term created, revision modified, std::uint64_t sequence) {
    return {.value = {.name = "b", .ttl = std::chrono::seconds{4}, .sequence = sequence},
            .created = created,
            .modified = modified};
}

inline state_record state_of(term in, std::uint64_t sequence) {
    return {.ceiling = 5000,
            .longest_lease = std::chrono::milliseconds{0},
            .name = "b",
            .ttl = std::chrono::seconds{4},
            .written_in = in,
            .sequence = sequence,
            .resigned = false};
}

// A server "a" with a TTL of 4 s (so its mandate is 3.2 s, a renewal is due each second, a call has
// half a second), and the two sides of its dialogue with the store.
class role_dialogue : public testing::Test {
protected:
    // The next thing that it asks for must be of that kind. Its ticket is kept for the answer.
    template <typename Kind>
    Kind asks(nanoseconds time) {
        const auto next = subject.next(at(time), tokens);
        if (!next || !std::holds_alternative<Kind>(next->what)) {
            ADD_FAILURE() << "asks for " << (next ? std::to_string(next->what.index()) : "nothing");
            return {};
        }
        asked = next->is;
        return std::get<Kind>(next->what);
    }
    void asks_nothing(nanoseconds time) {
        const auto next = subject.next(at(time), tokens);
        EXPECT_FALSE(next) << "asks for " << next->what.index();
    }
    role hears(nanoseconds time, const answer& what) {
        subject.take(asked, what, at(time));
        return subject.state();
    }
    role sees(nanoseconds time, const watch_event& what) {
        subject.take(what, at(time));
        return subject.state();
    }
    template <typename Kind>
    std::optional<Kind> is_told() {
        const auto event = subject.next_event();
        if (!event || !std::holds_alternative<Kind>(*event)) {
            return std::nullopt;
        }
        return std::get<Kind>(*event);
    }

    // Nobody has the key; it campaigns at that time, is answered a millisecond later, and the
    // campaign's send time is the beginning of its mandate.
    void campaigns(nanoseconds time) {
        asks<look>(time);
        ASSERT_EQ(hears(time, seen{{}, {9}}), role::campaigning);
        asks<grant_lease>(time);
        hears(time, lease_granted{lease_of_mine, std::chrono::seconds{4}});
        const campaign sent = asks<campaign>(time);
        EXPECT_EQ(sent.lease, lease_of_mine);
        EXPECT_EQ(sent.value,
                  (active_record{.name = "a", .ttl = std::chrono::seconds{4}, .sequence = 0}));
    }
    void wins(nanoseconds time, const std::optional<state_record>& state) {
        campaigns(time);
        ASSERT_EQ(hears(time + std::chrono::milliseconds{1}, campaigned{true, {10}, state, {}}),
                  role::waiting);
    }
    // It is due, and is answered a millisecond later with that revision.
    renew renews(nanoseconds time, revision made) {
        const renew sent = asks<renew>(time);
        hears(time + std::chrono::milliseconds{1}, renewed{true, made, {}});
        return sent;
    }
    // It is active from 2 ms on, in term 10, with revision 11; its deadline is at 3.201 s.
    void opens() {
        state_record before = state_of({5}, 3);
        before.resigned = true;
        wins(std::chrono::milliseconds{0}, before);
        renews(std::chrono::milliseconds{1}, {11});
        ASSERT_EQ(subject.state(), role::active);
        ASSERT_TRUE(is_told<open_now>());
    }
    // The keepalive that is due is asked for and not answered.
    void leave_keepalive(nanoseconds time) { asks<keep_lease_alive>(time); }

    token_position tokens{.last = 0, .unix_ms = 1000};
    role_options options{.name = "a", .ttl = std::chrono::seconds{4}, .grant_delay = {}};
    role_machine subject{options};
    ticket asked;
};

}  // namespace monolock::coordination
