#include "server/admin/api_call.hpp"

#include <utility>

#include "config/number.hpp"
#include "protocol/lock_name.hpp"
#include "protocol/utf8.hpp"
#include "server/admin/api_json.hpp"
#include "server/http/target.hpp"

namespace monolock::server::admin {

namespace {

using http::response;
using http::status;

constexpr std::size_t limit_max = 1'000'000;
constexpr std::size_t window_limit_default = 100;
constexpr std::size_t recent_max = 256;

// A character of each name, and stars around them: no longer pattern says more.
constexpr std::size_t match_bytes_max = 2 * protocol::lock_name_bytes_max + 1;

enum class resource { info, locks, lock, release, waiter, history, events };

// What a path leads to. The name and the waiter come from the path, or else from the query.
struct place {
    resource what;
    std::optional<std::string> name{};
    std::optional<std::string> who{};
};

std::optional<place> find_place(std::vector<std::string> path) {
    const auto is = [&](std::size_t index, std::string_view word) { return path[index] == word; };
    if (path.size() < 2 || !is(0, "api")) {
        return std::nullopt;
    }
    if (path.size() == 2) {
        if (is(1, "info")) {
            return place{.what = resource::info};
        }
        if (is(1, "locks")) {
            return place{.what = resource::locks};
        }
        if (is(1, "lock")) {
            return place{.what = resource::lock};
        }
        if (is(1, "events")) {
            return place{.what = resource::events};
        }
    } else if (path.size() == 3 && is(1, "lock")) {
        if (is(2, "release")) {
            return place{.what = resource::release};
        }
        if (is(2, "waiter")) {
            return place{.what = resource::waiter};
        }
        if (is(2, "history")) {
            return place{.what = resource::history};
        }
    } else if (is(1, "locks")) {
        if (path.size() == 3) {
            return place{.what = resource::lock, .name = std::move(path[2])};
        }
        if (path.size() == 4 && is(3, "release")) {
            return place{.what = resource::release, .name = std::move(path[2])};
        }
        if (path.size() == 5 && is(3, "waiters")) {
            return place{
                .what = resource::waiter, .name = std::move(path[2]), .who = std::move(path[4])};
        }
    }
    return std::nullopt;
}

std::string_view method_of(resource what) noexcept {
    switch (what) {
        case resource::release:
            return "POST";
        case resource::waiter:
            return "DELETE";
        case resource::info:
        case resource::locks:
        case resource::lock:
        case resource::history:
        case resource::events:
            return "GET";
    }
    return "GET";
}

// The parameters of a request, each to be taken once. The first mistake is kept, and what is taken
// after it does not matter.
class parameters {
public:
    explicit parameters(std::vector<std::pair<std::string, std::string>> given)
        : given_{std::move(given)} {}

    void fail(std::string why) {
        if (!wrong_) {
            wrong_ = std::move(why);
        }
    }

    // What is wrong, that a parameter was not taken included.
    [[nodiscard]] std::optional<std::string> wrong() {
        if (!given_.empty()) {
            fail("unknown parameter: " + given_.front().first);
        }
        return wrong_;
    }

    [[nodiscard]] std::optional<std::string> take(std::string_view key) {
        std::optional<std::string> found;
        for (auto each = given_.begin(); each != given_.end();) {
            if (each->first != key) {
                ++each;
                continue;
            }
            if (found) {
                fail("twice: " + each->first);
            }
            found = std::move(each->second);
            each = given_.erase(each);
        }
        return found;
    }

    [[nodiscard]] std::optional<std::uint64_t> take_number(std::string_view key) {
        const auto text = take(key);
        if (!text) {
            return std::nullopt;
        }
        const auto number = config::parse_number<std::uint64_t>(*text);
        if (!number) {
            fail(std::string{key} + " must be a number");
        }
        return number;
    }

private:
    std::vector<std::pair<std::string, std::string>> given_;
    std::optional<std::string> wrong_;
};

std::string take_name(place& at, parameters& with) {
    std::optional<std::string> name = at.name ? std::move(at.name) : with.take("name");
    if (!name) {
        with.fail("a name is needed: ?name=");
        return {};
    }
    if (protocol::check_lock_name(*name)) {
        with.fail("no lock can have this name");
    }
    return *std::move(name);
}

waiter_key take_who(place& at, parameters& with) {
    std::optional<std::string> text = at.who ? std::move(at.who) : with.take("id");
    if (!text) {
        with.fail("an id or an address is needed: ?id=");
        return {};
    }
    if (const auto id = config::parse_number<std::uint64_t>(*text)) {
        return *id;
    }
    const auto peer = peer_address::parse(*text);
    if (!peer) {
        with.fail("neither an id nor an address");
        return {};
    }
    return *peer;
}

// Of a listing: `match`, if it is one.
std::optional<std::string> take_match(parameters& with) {
    std::optional<std::string> match = with.take("match");
    if (match && match->size() > match_bytes_max) {
        with.fail("match is longer than any pattern needs to be");
    }
    if (match && !protocol::is_valid_utf8(*match)) {
        with.fail("match is not valid UTF-8");
    }
    return match;
}

std::optional<std::size_t> take_limit(parameters& with) {
    const auto limit = with.take_number("limit");
    if (limit && (*limit == 0 || *limit > limit_max)) {
        with.fail("limit must be from 1 to " + std::to_string(limit_max));
    }
    return limit;
}

std::optional<std::size_t> take_at_most(std::string_view key, std::size_t most, parameters& with) {
    const auto count = with.take_number(key);
    if (count && *count > most) {
        with.fail(std::string{key} + " must be from 0 to " + std::to_string(most));
    }
    return count;
}

listing_order take_order(std::string_view word, parameters& with) {
    if (word == "waiters") {
        return listing_order::waiters;
    }
    if (word == "held") {
        return listing_order::held;
    }
    if (word != "name") {
        with.fail("sort must be name, waiters or held");
    }
    return listing_order::name;
}

list_call take_list(parameters& with) {
    list_call made{.match = take_match(with),
                   .limit = take_limit(with),
                   .after = with.take("after"),
                   .snapshot = with.take_number("snapshot")};
    if (made.after && !protocol::is_valid_utf8(*made.after)) {
        with.fail("after is not valid UTF-8");
    }
    return made;
}

// What makes a listing a window is that it says how it is sorted.
window_call take_window(const std::string& sort, parameters& with) {
    window_call made{.match = take_match(with), .sort = take_order(sort, with)};
    made.from = with.take_number("from").value_or(0);
    made.limit = take_limit(with).value_or(window_limit_default);
    made.waiters_max =
        take_at_most("waiters", listed_waiters_max, with).value_or(listed_waiters_max);
    return made;
}

api_call take_call(place& at, parameters& with) {
    switch (at.what) {
        case resource::info:
            return info_call{};
        case resource::locks:
            if (const auto sort = with.take("sort")) {
                return take_window(*sort, with);
            }
            return take_list(with);
        case resource::lock: {
            show_call made{.name = take_name(at, with),
                           .waiters_max = take_at_most("waiters", limit_max, with)};
            return made;
        }
        case resource::release: {
            release_call made{.name = take_name(at, with), .token = with.take_number("token")};
            return made;
        }
        case resource::waiter: {
            kick_call made{.name = take_name(at, with), .who = take_who(at, with)};
            return made;
        }
        case resource::history:
            return history_call{.name = take_name(at, with)};
        case resource::events: {
            events_call made{.recent = take_at_most("recent", recent_max, with).value_or(0)};
            return made;
        }
    }
    return info_call{};
}

}  // namespace

response refuse(status code, std::string_view why) {
    return {.code = code, .content_type = "application/json", .body = error_body(why)};
}

std::variant<api_call, response> understand(const http::request& what) {
    auto target = http::parse_target(what.target);
    if (!target) {
        return refuse(status::bad_request, "malformed path or query");
    }
    std::optional<place> at = find_place(std::move(target->path));
    if (!at) {
        return refuse(status::not_found, "no such endpoint");
    }
    const std::string_view method = method_of(at->what);
    if (what.method != method && !(method == "GET" && what.method == "HEAD")) {
        return http::method_not_allowed(refuse,
                                        method == "GET" ? "GET, HEAD" : std::string{method});
    }
    parameters with{std::move(target->query)};
    api_call call = take_call(*at, with);
    if (auto* const events = std::get_if<events_call>(&call)) {
        events->is_head = what.method == "HEAD";
    }
    if (const auto wrong = with.wrong()) {
        return refuse(status::bad_request, *wrong);
    }
    return call;
}

}  // namespace monolock::server::admin
