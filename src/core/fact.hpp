#pragma once

#include <iosfwd>
#include <variant>
#include <vector>

#include "core/session.hpp"

namespace monolock::core {

// What the lock table did, stated in order. The layer above turns each fact into a frame, a count
// and a log or audit record. Pointers are valid until the table is called again about that session.

struct queued {
    session* who = nullptr;
    friend bool operator==(const queued&, const queued&) = default;
};

// The session became the owner.
struct granted {
    session* who = nullptr;
    fencing_token token;
    nanoseconds waited{0};  // since its ACQUIRE was handled; zero if it never waited
    friend bool operator==(const granted&, const granted&) = default;
};

// A heartbeat was taken; the state is the one at that moment.
struct acknowledged {
    session* who = nullptr;
    session_state state = session_state::waiting;
    fencing_token token;  // zero while waiting
    friend bool operator==(const acknowledged&, const acknowledged&) = default;
};

struct ended {
    session* who = nullptr;
    end_reason why = end_reason::graceful;
    session_state was = session_state::waiting;  // waiting or owning
    nanoseconds lasted{0};                       // in that state
    friend bool operator==(const ended&, const ended&) = default;
};

using fact = std::variant<queued, granted, acknowledged, ended>;
using fact_list = std::vector<fact>;

// For failure messages: "granted(#3, token 7)".
std::ostream& operator<<(std::ostream& out, const fact& what);

}  // namespace monolock::core
