#include "config/etcd_endpoints.hpp"

#include <algorithm>
#include <variant>

namespace monolock::config {

namespace {

constexpr std::string_view http_prefix = "http://";
constexpr std::string_view https_prefix = "https://";
constexpr const char* shape = "write http://host:port or https://[::1]:port";

// Stricter than an address to listen on: this one becomes part of a URL.
bool can_be_in_url(std::string_view host) noexcept {
    return std::ranges::all_of(host, [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' ||
               letter == '_' || letter == ':';
    });
}

parsed<etcd_endpoint> parse_endpoint(std::string_view text) {
    etcd_endpoint made;
    if (text.starts_with(https_prefix)) {
        made.scheme = endpoint_scheme::https;
        text.remove_prefix(https_prefix.size());
    } else if (text.starts_with(http_prefix)) {
        text.remove_prefix(http_prefix.size());
    } else {
        return diagnostic{
            std::string{"an endpoint begins with http:// or https://, without a blank "
                        "before it; "} +
            shape};
    }
    if (text.find('@') != std::string_view::npos) {
        return diagnostic{"an endpoint names no user; user and password go into a file"};
    }
    if (text.ends_with('/')) {
        text.remove_suffix(1);  // the whole of a URL without a path
    }
    if (text.find_first_of("/?#") != std::string_view::npos) {
        return diagnostic{std::string{"an endpoint ends with its port; "} + shape};
    }
    const auto where = parse_address(text);
    const auto* const tcp = where ? std::get_if<tcp_address>(&*where) : nullptr;
    if (tcp == nullptr || tcp->host.empty() || !can_be_in_url(tcp->host)) {
        return diagnostic{std::string{"an endpoint is a host and its port; "} + shape};
    }
    if (tcp->port == 0) {
        return diagnostic{"port 0 is nobody's"};
    }
    made.where = *tcp;
    return made;
}

}  // namespace

parsed<std::vector<etcd_endpoint>> parse_etcd_endpoints(std::string_view text) {
    std::vector<etcd_endpoint> all;
    for (;;) {
        const std::size_t comma = text.find(',');
        const auto endpoint = parse_endpoint(text.substr(0, comma));
        if (!endpoint) {
            return endpoint.error();
        }
        if (std::ranges::find(all, *endpoint) != all.end()) {
            return diagnostic{"an endpoint is there twice"};
        }
        if (!all.empty() && all.front().scheme != endpoint->scheme) {
            return diagnostic{"some endpoints are http:// and some https://"};
        }
        all.push_back(*endpoint);
        if (comma == std::string_view::npos) {
            return all;
        }
        text.remove_prefix(comma + 1);
    }
}

std::string to_string(const etcd_endpoint& endpoint) {
    const std::string_view prefix =
        endpoint.scheme == endpoint_scheme::https ? https_prefix : http_prefix;
    return std::string{prefix} + to_string(address{endpoint.where});
}

std::string to_string(const std::vector<etcd_endpoint>& endpoints) {
    std::string out;
    for (const etcd_endpoint& each : endpoints) {
        out += (out.empty() ? "" : ",") + to_string(each);
    }
    return out;
}

}  // namespace monolock::config
