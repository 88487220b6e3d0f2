#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "server/http/message.hpp"
#include "server/peer_address.hpp"

namespace monolock::server::admin {

// A request to the admin API, understood: what is asked, with every parameter valid. Pure.

struct info_call {};

struct list_call {
    std::optional<std::string> match;       // a glob
    std::optional<std::size_t> limit;       // above zero
    std::optional<std::string> after;       // a lock's name: what comes behind it
    std::optional<std::uint64_t> snapshot;  // the one that a page before came from
};

struct show_call {
    std::string name;
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

struct events_call {};

using api_call = std::variant<info_call, list_call, show_call, release_call, kick_call,
                              history_call, events_call>;

// The call, or the response that refuses it: 400, 404, or 405 with Allow. A parameter that the
// endpoint does not know is refused: a misspelt token must not release whatever owner there is.
[[nodiscard]] std::variant<api_call, http::response> understand(const http::request& what);

// {"error":"…"} with that status.
[[nodiscard]] http::response refuse(http::status code, std::string_view why);

}  // namespace monolock::server::admin
