#include "server/admin/gate.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace monolock::server::admin {

namespace {

std::string lower(std::string_view text) {
    std::string out{text};
    for (char& letter : out) {
        letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    return out;
}

// inet_pton reads up to a NUL, and what stands behind it would pass unseen.
bool is_literal(int family, const std::string& host) noexcept {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    return host.find('\0') == std::string::npos &&
           ::inet_pton(family, host.c_str(), address.data()) == 1;
}

bool is_port(std::string_view text) noexcept {
    return text.size() <= 5 && std::all_of(text.begin(), text.end(),
                                           [](char digit) { return digit >= '0' && digit <= '9'; });
}

// The host of a Host field's value, an IPv6 literal without its brackets; nothing if the value is
// none.
struct named_host {
    std::string name;
    bool bracketed = false;
};
std::optional<named_host> host_of(std::string_view value) {
    named_host made;
    std::string_view rest;
    if (value.starts_with('[')) {
        const std::size_t end = value.find(']');
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        made = {.name = std::string{value.substr(1, end - 1)}, .bracketed = true};
        rest = value.substr(end + 1);
    } else {
        const std::size_t end = std::min(value.find(':'), value.size());
        made = {.name = std::string{value.substr(0, end)}};
        rest = value.substr(end);
    }
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) {
        return std::nullopt;
    }
    return made;
}

bool is_ours(const named_host& host, std::string_view configured) {
    if (host.bracketed) {
        return is_literal(AF_INET6, host.name);
    }
    return host.name == "localhost" || is_literal(AF_INET, host.name) ||
           (!host.name.empty() && host.name == lower(configured));
}

}  // namespace

std::optional<std::string> objection(const http::request& to, std::string_view configured_host) {
    const auto hosts = to.values("Host");
    if (hosts.size() != 1) {
        return "a request names one Host";
    }
    const std::string host = lower(hosts.front());
    const auto named = host_of(host);
    if (!named || !is_ours(*named, configured_host)) {
        return "the Host is not this server";
    }
    for (const std::string_view site : to.values("Sec-Fetch-Site")) {
        if (site != "same-origin" && site != "none") {
            return "a request from another site";
        }
    }
    for (const std::string_view origin : to.values("Origin")) {
        if (lower(origin) != "http://" + host) {
            return "a request from another origin";
        }
    }
    return std::nullopt;
}

// A page's script can change none of these but, in some browsers, the User-Agent.
bool is_of_a_browser(const http::request& what) {
    return std::any_of(what.fields.begin(), what.fields.end(), [](const http::field& each) {
        const std::string name = lower(each.name);
        return name == "origin" || name == "referer" || name.starts_with("sec-fetch-") ||
               (name == "user-agent" && each.value.starts_with("Mozilla/"));
    });
}

}  // namespace monolock::server::admin
