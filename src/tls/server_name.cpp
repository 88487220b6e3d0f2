#include "tls/server_name.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <variant>

namespace monolock::tls {

namespace {

using config::diagnostic;

// Of a DNS name in its text form (RFC 1035, section 2.3.4).
constexpr std::size_t name_bytes_max = 253;

// std::isalnum would ask the locale.
bool can_be_in_label(char letter) noexcept {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
}

// OpenSSL takes a name that begins with a dot for "anything below": no empty labels.
bool is_dns_name(std::string_view text) noexcept {
    const bool has_empty_label =
        text.starts_with('.') || text.ends_with('.') || text.find("..") != std::string_view::npos;
    return !text.empty() && text.size() <= name_bytes_max && !has_empty_label &&
           std::all_of(text.begin(), text.end(),
                       [](char letter) { return letter == '.' || can_be_in_label(letter); });
}

bool is_address(const std::string& text) noexcept {
    in_addr four{};
    in6_addr six{};
    return inet_pton(AF_INET, text.c_str(), &four) == 1 ||
           inet_pton(AF_INET6, text.c_str(), &six) == 1;
}

}  // namespace

config::parsed<server_name> expected_server_name(const config::address& where,
                                                 std::string_view given) {
    std::string_view text = given;
    if (given.empty()) {
        const auto* const tcp = std::get_if<config::tcp_address>(&where);
        if (tcp == nullptr || tcp->host.empty()) {
            return diagnostic{"the address has no host that the server's certificate could name"};
        }
        text = tcp->host;
    }
    // A zone ("fe80::1%eth0") is this machine's word for an interface; no certificate has one.
    std::string address{text.substr(0, text.find('%'))};
    if (text.find('\0') == std::string_view::npos && is_address(address)) {
        return server_name{.text = std::move(address), .is_address = true};
    }
    if (text.ends_with('.')) {
        text.remove_suffix(1);
    }
    if (!is_dns_name(text) || is_address(std::string{text})) {
        return diagnostic{
            "the name of a server is a DNS name or an IP address, in ASCII and without brackets"};
    }
    return server_name{.text = std::string{text}, .is_address = false};
}

}  // namespace monolock::tls
