#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/task.hpp"

namespace monolock::server::http {

// HTTP as data: what an endpoint sees of a request, and what it says. No library's types.

// The statuses that this server uses.
enum class status : std::uint16_t {
    ok = 200,
    bad_request = 400,
    forbidden = 403,
    not_found = 404,
    method_not_allowed = 405,
    request_timeout = 408,
    conflict = 409,
    content_too_large = 413,
    fields_too_large = 431,
    internal_error = 500,
    unavailable = 503,
};

struct field {
    std::string name;
    std::string value;
};

struct request {
    std::string method;  // as it was sent: "GET"
    std::string target;  // as it was sent: path and query, nothing decoded
    std::vector<field> fields;
    std::string body;

    // Each value of the header field, in their order; names are compared without regard to case.
    [[nodiscard]] std::vector<std::string_view> values(std::string_view name) const;

    // The target up to its query.
    [[nodiscard]] std::string_view path() const noexcept {
        return std::string_view{target}.substr(0, target.find('?'));
    }
};

// The rest of a body that is too long, or too late, to be made at once: each call gives the next
// piece, and at last nothing.
using piece_source = std::function<task<std::optional<std::string>>()>;

struct response {
    status code = status::ok;
    std::string content_type;
    std::string body;
    std::vector<field> fields{};  // beside those that every response has
    piece_source more{};          // what comes after `body`; empty: nothing
};

// Answers a request. It owns what it is given; several may be under way.
using endpoint = std::function<task<response>(request)>;

// The response to what no endpoint is asked: a malformed request, or an endpoint that failed.
using refusal = std::function<response(status code, std::string_view why)>;

[[nodiscard]] response plain_text(status code, std::string_view line);

// 405, and which methods would do: "GET, HEAD".
[[nodiscard]] response method_not_allowed(const refusal& say, std::string allowed);

}  // namespace monolock::server::http
