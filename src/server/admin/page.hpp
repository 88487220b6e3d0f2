#pragma once

#include <optional>

#include "server/http/message.hpp"

namespace monolock::server::admin {

// The operator's page, "/", and the files that it consists of, below "/page/": the response to a
// request for one of them, 405 if it is not a GET or HEAD; nothing for any other path. It forbids
// the browser everything but scripts, styles, pictures and calls of this very origin. Pure.
[[nodiscard]] std::optional<http::response> page_response(const http::request& to);

}  // namespace monolock::server::admin
