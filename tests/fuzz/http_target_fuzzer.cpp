// Paths and queries of the admin API: taken apart as a table of what each character may be says,
// and understood as a table of the endpoints says. What is understood, written anew as a query,
// means the same; what is refused is answered in one line of JSON.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/ip_oracle.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "server/admin/api_call.hpp"
#include "server/http/target.hpp"

namespace {

namespace admin = monolock::server::admin;
namespace fuzz = monolock::fuzz;
namespace http = monolock::server::http;
using fuzz::require;

// Every byte is printable ASCII, and every percent sign begins an escape: what holds of the whole
// holds of its parts, since no separator is a hexadecimal digit.
bool is_well_escaped(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] < '!' || text[at] > '~') {
            return false;
        }
        if (text[at] == '%' &&
            (at + 2 >= text.size() || !fuzz::is_hex(text[at + 1]) || !fuzz::is_hex(text[at + 2]))) {
            return false;
        }
    }
    return true;
}

int value_of(char hex) {
    constexpr std::string_view digits = "0123456789abcdef0123456789ABCDEF";
    return static_cast<int>(digits.find(hex) % 16);
}

// Whether `decoded` is the text without its escapes.
bool is_decoded(std::string_view decoded, std::string_view text) {
    for (const char letter : decoded) {
        if (text.empty()) {
            return false;
        }
        const bool escaped = text[0] == '%';
        const int byte = escaped ? value_of(text[1]) * 16 + value_of(text[2]) : text[0];
        if (static_cast<unsigned char>(letter) != static_cast<unsigned char>(byte)) {
            return false;
        }
        text.remove_prefix(escaped ? 3 : 1);
    }
    return text.empty();
}

void check_target(std::string_view text, const std::optional<http::target>& parsed) {
    require(parsed.has_value() == (text.starts_with('/') && is_well_escaped(text)));
    if (!parsed) {
        return;
    }
    const std::size_t mark = std::min(text.find('?'), text.size());
    std::size_t segment = 0;
    fuzz::for_each_part(text.substr(1, mark - 1), '/', [&](std::string_view part) {
        require(segment < parsed->path.size() && is_decoded(parsed->path[segment++], part));
    });
    require(segment == parsed->path.size());
    std::size_t pair = 0;
    if (mark + 1 < text.size()) {
        fuzz::for_each_part(text.substr(mark + 1), '&', [&](std::string_view part) {
            require(pair < parsed->query.size());
            const auto& [key, value] = parsed->query[pair++];
            const std::size_t equals = std::min(part.find('='), part.size());
            require(is_decoded(key, part.substr(0, equals)));
            require(is_decoded(value, part.substr(std::min(equals + 1, part.size()))));
        });
    }
    require(pair == parsed->query.size());
}

void check_absolute(std::string_view text) {
    constexpr std::string_view scheme = "http://";
    std::string lower{text.substr(0, scheme.size())};
    std::ranges::transform(lower, lower.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    });
    const auto split = http::split_absolute(text);
    const std::string_view rest = text.substr(std::min(text.size(), scheme.size()));
    const bool has_host = !rest.empty() && rest[0] != '/' && rest[0] != '?';
    require(split.has_value() == (lower == scheme && has_host));
    if (split) {
        require(split->authority.find_first_of("/?") == std::string::npos);
        require(split->origin_form.starts_with('/'));
        require(split->authority + split->origin_form == rest ||
                split->authority + split->origin_form.substr(1) == rest);
    }
}

// What a call means, as the target that says it by a query alone.
struct canonical {
    std::string operator()(const admin::info_call& /*what*/) const { return "/api/info"; }
    std::string operator()(const admin::events_call& what) const {
        require(what.recent <= 256);
        return "/api/events?recent=" + std::to_string(what.recent);
    }
    std::string operator()(const admin::window_call& what) const {
        require(what.limit >= 1 && what.limit <= 1'000'000 && what.waiters_max <= 100);
        require(!what.match || fuzz::utf8_oracle(*what.match));
        constexpr std::array<std::string_view, 3> orders{"name", "waiters", "held"};
        std::string made = "/api/locks?sort=";
        made += orders.at(static_cast<std::size_t>(what.sort));
        made += "&from=" + std::to_string(what.from) + "&limit=" + std::to_string(what.limit) +
                "&waiters=" + std::to_string(what.waiters_max);
        return what.match ? made + "&match=" + http::percent_encoded(*what.match) : made;
    }
    std::string operator()(const admin::list_call& what) const {
        std::string made = "/api/locks";
        char separator = '?';
        const auto add = [&](std::string_view key, const std::string& value) {
            made += std::exchange(separator, '&');
            made += std::string{key} + "=" + http::percent_encoded(value);
        };
        if (what.match) {
            add("match", *what.match);
        }
        if (what.limit) {
            require(*what.limit >= 1 && *what.limit <= 1'000'000);
            add("limit", std::to_string(*what.limit));
        }
        if (what.after) {
            add("after", *what.after);
        }
        if (what.snapshot) {
            add("snapshot", std::to_string(*what.snapshot));
        }
        require(!what.match || fuzz::utf8_oracle(*what.match));
        require(!what.after || fuzz::utf8_oracle(*what.after));
        return made;
    }
    std::string operator()(const admin::show_call& what) const {
        require(!what.waiters_max || *what.waiters_max <= 1'000'000);
        return "/api/lock?name=" + name(what.name) +
               (what.waiters_max ? "&waiters=" + std::to_string(*what.waiters_max) : "");
    }
    std::string operator()(const admin::history_call& what) const {
        return "/api/lock/history?name=" + name(what.name);
    }
    std::string operator()(const admin::release_call& what) const {
        return "/api/lock/release?name=" + name(what.name) +
               (what.token ? "&token=" + std::to_string(*what.token) : "");
    }
    std::string operator()(const admin::kick_call& what) const {
        const auto* const id = std::get_if<std::uint64_t>(&what.who);
        const std::string who =
            id != nullptr ? std::to_string(*id)
                          : std::get<monolock::server::peer_address>(what.who).to_string();
        return "/api/lock/waiter?id=" + http::percent_encoded(who) + "&name=" + name(what.name);
    }

    static std::string name(const std::string& of) {
        require(!of.empty() && of.size() <= 255 && fuzz::utf8_oracle(of));
        return http::percent_encoded(of);
    }
};

struct endpoint {
    std::string_view method;
    std::array<std::string_view, 5> path;  // "*": anything
    std::array<std::string_view, 5> keys{};
};

constexpr std::array endpoints{
    endpoint{"GET", {"api", "info"}},
    endpoint{"GET", {"api", "locks"}, {"match", "limit", "after", "snapshot"}},
    endpoint{"GET", {"api", "lock"}, {"name", "waiters"}},
    endpoint{"GET", {"api", "events"}, {"recent"}},
    endpoint{"POST", {"api", "lock", "release"}, {"name", "token"}},
    endpoint{"DELETE", {"api", "lock", "waiter"}, {"name", "id"}},
    endpoint{"GET", {"api", "lock", "history"}, {"name"}},
    endpoint{"GET", {"api", "locks", "*"}, {"waiters"}},
    endpoint{"POST", {"api", "locks", "*", "release"}, {"token"}},
    endpoint{"DELETE", {"api", "locks", "*", "waiters", "*"}},
};

// What makes a listing a window is that it says how it is sorted.
constexpr endpoint window{"GET", {"api", "locks"}, {"sort", "match", "from", "limit", "waiters"}};

bool is_window(const http::target& target) {
    return target.path == std::vector<std::string>{"api", "locks"} &&
           std::ranges::find(target.query, "sort", [](const auto& each) {
               return std::string_view{each.first};
           }) != target.query.end();
}

bool leads_to(const std::vector<std::string>& path, const endpoint& there) {
    const auto end = std::ranges::find(there.path, std::string_view{});
    return std::equal(path.begin(), path.end(), there.path.begin(), end,
                      [](const std::string& segment, std::string_view pattern) {
                          return pattern == "*" || segment == pattern;
                      });
}

// 200 stands for a call; its parameters may yet be wrong, each for itself.
unsigned status_of(const std::optional<http::target>& target, std::string_view method) {
    if (!target) {
        return 400;
    }
    const auto* const found = std::ranges::find_if(
        endpoints, [&](const endpoint& each) { return leads_to(target->path, each); });
    if (found == endpoints.end()) {
        return 404;
    }
    if (method != found->method && !(method == "HEAD" && found->method == "GET")) {
        return 405;
    }
    const auto& keys = is_window(*target) ? window.keys : found->keys;
    std::vector<std::string_view> seen;
    for (const auto& [key, value] : target->query) {
        if (key.empty() || std::ranges::find(keys, std::string_view{key}) == keys.end() ||
            std::ranges::find(seen, std::string_view{key}) != seen.end()) {
            return 400;
        }
        seen.push_back(key);
    }
    return 200;
}

void check_call(std::string_view method, std::string_view text,
                const std::optional<http::target>& target) {
    const auto understood = admin::understand(
        {.method = std::string{method}, .target = std::string{text}, .fields = {}, .body = {}});
    const unsigned expected = status_of(target, method);
    if (const auto* const refused = std::get_if<http::response>(&understood)) {
        require(static_cast<unsigned>(refused->code) == (expected == 200 ? 400 : expected));
        require(refused->body.starts_with(R"({"error":")") && refused->body.ends_with("\"}\n"));
        require(
            fuzz::is_one_line(std::string_view{refused->body}.substr(0, refused->body.size() - 1)));
        require((expected == 405) == !refused->fields.empty());
        return;
    }
    require(expected == 200);
    const auto& call = std::get<admin::api_call>(understood);
    const std::string written = std::visit(canonical{}, call);
    const auto again = admin::understand(
        {.method = std::string{method}, .target = written, .fields = {}, .body = {}});
    const auto* const same = std::get_if<admin::api_call>(&again);
    require(same != nullptr && same->index() == call.index());
    require(std::visit(canonical{}, *same) == written);
}

}  // namespace

// The first byte says which method.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::array<std::string_view, 5> methods{"GET", "POST", "DELETE", "HEAD", "PUT"};
    fuzz::choices input{data, size};
    const std::string_view method = methods[input.next() % methods.size()];
    const std::string_view text = input.rest();
    const auto target = http::parse_target(text);
    check_target(text, target);
    check_absolute(text);
    check_call(method, text, target);

    const std::string encoded = http::percent_encoded(text);
    require(is_well_escaped(encoded) && is_decoded(text, encoded));
    require(encoded.find_first_of("/?&=+#") == std::string::npos);
    return 0;
}
