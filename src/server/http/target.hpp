#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monolock::server::http {

// A request target taken apart and decoded, once. Pure.
struct target {
    std::vector<std::string> path;  // the segments: "/a//b" is "a", "", "b"
    std::vector<std::pair<std::string, std::string>> query;  // in order; a key without '=' is empty
};

// Nothing if it is not a path that begins with a slash, or an escape in it is not one. A plus is a
// plus: who means a space says %20. Names may hold any bytes, but every byte that is not printable
// ASCII must be escaped.
[[nodiscard]] std::optional<target> parse_target(std::string_view text);

// What a request for "http://host:80/path?query" names: the host and "/path?query".
struct absolute_target {
    std::string authority;
    std::string origin_form;
};

// Nothing if it has not this form. Neither part is checked, but there is one.
[[nodiscard]] std::optional<absolute_target> split_absolute(std::string_view text);

// The text with every byte escaped that is not a letter, a digit or one of -._~
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace monolock::server::http
