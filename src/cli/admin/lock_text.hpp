#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/admin/api_answers.hpp"

namespace monolock::cli {

// How locks and claims look to people. Pure. What comes from outside is escaped: each of these is
// as many lines as it should be, whatever a lock is called.

// The text as one word: bare if it is plain, else quoted.
[[nodiscard]] std::string word(std::string_view text);

// A row for each lock. There is at least one.
[[nodiscard]] std::string locks_text(const std::vector<lock_facts>& locks, bool coloured);

// What stands in its place when there is none.
[[nodiscard]] std::string no_locks_text(const std::optional<std::string>& match);

// One lock: a line for the owner and a table of the queue, numbered from 1.
[[nodiscard]] std::string lock_text(const lock_facts& lock, bool coloured);

// "127.0.0.1:4242 (worker-1), id 17, for 3m12s, token 1839, silent for 1.2s of a lease of 10.0s"
[[nodiscard]] std::string describe(const holder_facts& holder);
// "127.0.0.1:4242 (worker-1), id 18, for 3m12s"
[[nodiscard]] std::string describe(const waiter_facts& waiter);

// "nobody waits", "1 waits", "3 wait".
[[nodiscard]] std::string count_waiters(std::uint64_t count);

// How owner_and_place begins for a lock that has waiters and no owner.
inline constexpr std::string_view nobody_holds_it = "nobody holds it";

// "held by 127.0.0.1:4242 (worker-1) since 2026-03-01T09:30:00.250Z (3m12s), token 1839; number 2
// of 5 in the queue"; or nobody_holds_it in place of the owner. The place is that of the first
// waiter who has one of the names; without one it is how many wait.
[[nodiscard]] std::string owner_and_place(const lock_facts& lock,
                                          const std::vector<std::string>& own_names);

// The answer to info, a line for each thing. Whatever the server tells, as it tells it.
[[nodiscard]] std::string info_text(const json& info);

// "12 locks, 20 sessions, up 3h10m", of the same answer.
[[nodiscard]] std::string summary(const json& info);

// A line for a change of owner; and for an owner that is there already, with the time of its grant.
[[nodiscard]] std::string change_text(const change_facts& change, bool coloured);
[[nodiscard]] std::string held_text(const lock_facts& lock);

}  // namespace monolock::cli
