#include "server/http/message.hpp"

#include <algorithm>

namespace monolock::server::http {

namespace {

char lower(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_same_name(std::string_view left, std::string_view right) noexcept {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](char one, char other) { return lower(one) == lower(other); });
}

}  // namespace

std::vector<std::string_view> request::values(std::string_view name) const {
    std::vector<std::string_view> found;
    for (const field& each : fields) {
        if (is_same_name(each.name, name)) {
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
