#include "config/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "config/number.hpp"

namespace monolock::config {

namespace {

constexpr std::string_view unix_prefix = "unix:";

// Not a resolver's verdict, only what can never be a host: blanks, controls, and signs that show
// that something else was meant (a URL, a list).
bool can_be_host(std::string_view host) noexcept {
    return std::all_of(host.begin(), host.end(), [](char letter) {
        return static_cast<unsigned char>(letter) > ' ' && letter != '\x7f' && letter != '/' &&
               letter != ',' && letter != '[' && letter != ']' && letter != '@';
    });
}

// An IPv6 literal, with or without a zone ("fe80::1%eth0").
bool is_ipv6_literal(std::string_view text) {
    const std::size_t zone_at = text.find('%');
    if (zone_at != std::string_view::npos && zone_at + 1 == text.size()) {
        return false;
    }
    in6_addr ignored{};
    const std::string digits{text.substr(0, zone_at)};
    return digits.find('\0') == std::string::npos && can_be_host(text) &&
           inet_pton(AF_INET6, digits.c_str(), &ignored) == 1;
}

parsed<address> parse_unix(std::string_view path) {
    if (path.empty()) {
        return diagnostic{"a Unix socket needs a path, like unix:/run/monolock.sock"};
    }
    if (path.size() > unix_path_bytes_max) {
        return diagnostic{"the path of a Unix socket has at most " +
                          std::to_string(unix_path_bytes_max) + " bytes, this one has " +
                          std::to_string(path.size())};
    }
    if (path.find('\0') != std::string_view::npos) {
        return diagnostic{"the path of a Unix socket cannot hold a NUL"};
    }
    return address{unix_address{.path = std::string{path}}};
}

parsed<address> make_tcp(std::string_view host, std::string_view port_text) {
    const auto port = parse_number<std::uint16_t>(port_text);
    if (!port) {
        return diagnostic{"the port is not a number from 0 to 65535"};
    }
    return address{tcp_address{.host = std::string{host}, .port = *port}};
}

parsed<address> parse_bracketed(std::string_view text) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) {
        return diagnostic{"the bracket is not closed; write [::1]:7070"};
    }
    const std::string_view host = text.substr(1, close - 1);
    if (!is_ipv6_literal(host)) {
        return diagnostic{"only an IPv6 address goes in brackets, like [::1]:7070"};
    }
    const std::string_view rest = text.substr(close + 1);
    if (!rest.starts_with(':')) {
        return diagnostic{"no port; write [::1]:7070"};
    }
    return make_tcp(host, rest.substr(1));
}

}  // namespace

parsed<address> parse_address(std::string_view text) {
    if (text.starts_with(unix_prefix)) {
        return parse_unix(text.substr(unix_prefix.size()));
    }
    if (text.starts_with('[')) {
        return parse_bracketed(text);
    }
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return diagnostic{"no port; write host:port, :port, [::1]:port or unix:/path"};
    }
    const std::string_view host = text.substr(0, colon);
    if (host.find(':') != std::string_view::npos) {
        return diagnostic{"an IPv6 address goes in brackets, like [::1]:7070"};
    }
    if (!can_be_host(host)) {
        return diagnostic{"not a host; write host:port, :port, [::1]:port or unix:/path"};
    }
    return make_tcp(host, text.substr(colon + 1));
}

parsed<std::vector<address>> parse_address_list(std::string_view text) {
    std::vector<address> found;
    const bool is_list = text.find(',') != std::string_view::npos;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view item = text.substr(begin, end - begin);
        const auto refuse = [&](const std::string& why) {
            const std::string which =
                is_list ? "address " + std::to_string(found.size() + 1) + " of the list: " : "";
            return diagnostic{which + why};
        };
        if (is_list && item.empty()) {
            return refuse("is empty");
        }
        if ((begin > 0 && item.starts_with(' ')) || (end < text.size() && item.ends_with(' '))) {
            return refuse("no blank goes beside a comma");
        }
        auto where = parse_address(item);
        if (!where) {
            return refuse(where.error().text);
        }
        if (std::find(found.begin(), found.end(), *where) != found.end()) {
            return refuse("is there already");
        }
        if (found.size() == address_list_max) {
            return diagnostic{"at most " + std::to_string(address_list_max) + " addresses"};
        }
        found.push_back(*std::move(where));
        begin = end + 1;
    }
    return found;
}

std::string to_string(const address& where) {
    if (const auto* const local = std::get_if<unix_address>(&where)) {
        return std::string{unix_prefix} + local->path;
    }
    const auto& [host, port] = std::get<tcp_address>(where);
    const bool brackets = host.find(':') != std::string::npos;
    return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace monolock::config
