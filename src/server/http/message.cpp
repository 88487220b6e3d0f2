#include "server/http/message.hpp"

#include <boost/beast/core/string.hpp>

namespace monolock::server::http {

std::vector<std::string_view> request::values(std::string_view name) const {
    std::vector<std::string_view> found;
    for (const field& each : fields) {
        if (boost::beast::iequals(each.name, name)) {
            found.emplace_back(each.value);
        }
    }
    return found;
}

response plain_text(status code, std::string_view line) {
    return {.code = code,
            .content_type = "text/plain; charset=utf-8",
            .body = std::string{line} + '\n'};
}

response method_not_allowed(const refusal& say, std::string allowed) {
    response made = say(status::method_not_allowed, "only " + allowed);
    made.fields.push_back({.name = "Allow", .value = std::move(allowed)});
    return made;
}

}  // namespace monolock::server::http
