#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.hpp"

namespace monolock::server::admin {

// Why a request must be refused with 403, or nothing. It keeps web pages from
// using the API through an operator's browser: the Host must be an IP literal, localhost or the
// host that -admin-listen names, so that no name of an attacker's that resolves here is served; and
// a browser must say that the request comes from a page of this very origin, or from no page. Pure.
[[nodiscard]] std::optional<std::string> objection(const http::request& to,
                                                   std::string_view configured_host);

// Whether a browser may have sent it. Over a Unix socket others may name any Host, for no name
// leads there; but a browser comes that far too, through ssh -L (decision 0028). Pure.
[[nodiscard]] bool is_of_a_browser(const http::request& what);

}  // namespace monolock::server::admin
