#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "server/http/message.hpp"
#include "server/peer_address.hpp"

namespace monolock::server::admin {

// How many waiters of each lock a listing shows.
inline constexpr std::size_t listed_waiters_max = 100;

// A request to the admin API, understood: what is asked, with every parameter valid. Pure.

struct info_call {};

struct list_call {
    std::optional<std::string> match;       // a glob
    std::optional<std::size_t> limit;       // above zero
    std::optional<std::string> after;       // a lock's name: what comes behind it
    std::optional<std::uint64_t> snapshot;  // the one that a page before came from
};

// What a window shows first: names, long queues, or owners who have held for long.
enum class listing_order { name, waiters, held };

// As many locks as a screen holds, of those that there are now: nothing is kept for a next page.
struct window_call {
    std::optional<std::string> match;
    listing_order sort = listing_order::name;
    std::size_t from = 0;
    std::size_t limit = 0;
    std::size_t waiters_max = 0;  // of each lock
};

struct show_call {
    std::string name;
    std::optional<std::size_t> waiters_max;  // absent: the whole queue
};

struct release_call {
    std::string name;
    std::optional<std::uint64_t> token;  // the owner's, or the call is refused
};

// Which waiter: its id, or its address.
using waiter_key = std::variant<std::uint64_t, peer_address>;

struct kick_call {
    std::string name;
    waiter_key who;
};

struct history_call {
    std::string name;
};

struct events_call {
    std::size_t recent = 0;  // changes of before, to begin with
    bool is_head = false;    // nobody listens
};

using api_call = std::variant<info_call, list_call, window_call, show_call, release_call, kick_call,
                              history_call, events_call>;

// The call, or the response that refuses it: 400, 404, or 405 with Allow. A parameter that the
// endpoint does not know is refused: a misspelt token must not release whatever owner there is.
[[nodiscard]] std::variant<api_call, http::response> understand(const http::request& what);

// {"error":"…"} with that status.
[[nodiscard]] http::response refuse(http::status code, std::string_view why);

}  // namespace monolock::server::admin
