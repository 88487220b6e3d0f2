// Addresses and lists of them: what people write against its grammar, the name that a client
// expects of the server there, and the address of a peer, which is read as it is printed.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/ip_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "server/peer_address.hpp"
#include "tls/server_name.hpp"

namespace {

namespace config = monolock::config;
namespace fuzz = monolock::fuzz;
using fuzz::require;
using monolock::server::peer_address;

bool is_host(std::string_view host) {
    return std::ranges::none_of(host, [](char letter) {
        return static_cast<unsigned char>(letter) <= 0x20 || letter == 0x7F ||
               std::string_view{"/,[]@"}.find(letter) != std::string_view::npos;
    });
}

// "address" or "address%zone"
bool is_zoned_ipv6(std::string_view text) {
    const std::size_t zone = text.find('%');
    const bool has_zone = zone != std::string_view::npos;
    return fuzz::is_ipv6(text.substr(0, zone)) &&
           (!has_zone || (zone + 1 < text.size() && is_host(text.substr(zone + 1))));
}

struct host_and_port {
    std::string_view host;
    std::string_view port;
    bool bracketed = false;
};

// The last colon that can be is where the port begins.
std::optional<host_and_port> oracle(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || !fuzz::is_number_up_to(text.substr(colon + 1), 65535)) {
        return std::nullopt;
    }
    host_and_port made{.host = text.substr(0, colon), .port = text.substr(colon + 1)};
    made.bracketed = made.host.starts_with('[') && made.host.ends_with(']');
    if (made.bracketed) {
        made.host = made.host.substr(1, made.host.size() - 2);
        return is_zoned_ipv6(made.host) ? std::optional{made} : std::nullopt;
    }
    const bool colons = made.host.find(':') != std::string_view::npos;
    return !colons && is_host(made.host) ? std::optional{made} : std::nullopt;
}

void check_address(std::string_view text, const config::parsed<config::address>& parsed) {
    constexpr std::string_view prefix = "unix:";
    if (text.starts_with(prefix)) {
        const std::string_view path = text.substr(prefix.size());
        require(static_cast<bool>(parsed) ==
                (!path.empty() && path.size() <= 107 && path.find('\0') == std::string_view::npos));
        require(!parsed || std::get<config::unix_address>(*parsed).path == path);
    } else {
        const auto expected = oracle(text);
        require(static_cast<bool>(parsed) == expected.has_value());
        if (parsed) {
            const auto& [host, port] = std::get<config::tcp_address>(*parsed);
            require(host == expected->host);
            const std::string digits = std::to_string(port);
            require(expected->port.ends_with(digits) &&
                    expected->port.find_first_not_of('0') >= expected->port.size() - digits.size());
        }
    }
    if (parsed) {
        const auto again = config::parse_address(config::to_string(*parsed));
        require(again && *again == *parsed);
    } else {
        require(!parsed.error().text.empty());
    }
}

// A list is right if every part of it is, no two are the same, and no blank is beside a comma.
void check_list(std::string_view text) {
    const auto list = config::parse_address_list(text);
    std::vector<config::address> parts;
    bool right =
        text.find(" ,") == std::string_view::npos && text.find(", ") == std::string_view::npos;
    fuzz::for_each_part(text, ',', [&](std::string_view part) {
        const auto one = config::parse_address(part);
        right = right && one && std::ranges::find(parts, *one) == parts.end();
        if (right) {
            parts.push_back(*one);
        }
    });
    right = right && parts.size() <= config::address_list_max;
    require(static_cast<bool>(list) == right);
    require(right ? *list == parts : !list.error().text.empty());
}

// A host of labels that are not empty, in letters that certificates have; or an IP literal.
void check_server_name(const config::address& where, std::string_view given) {
    const auto expected = monolock::tls::expected_server_name(where, given);
    const auto* const tcp = std::get_if<config::tcp_address>(&where);
    const std::string_view host = tcp == nullptr ? std::string_view{} : tcp->host;
    const std::string_view asked = given.empty() ? host : given;
    if (!expected) {
        require(!expected.error().text.empty());
        return;
    }
    const auto& [text, is_address] = *expected;
    require(is_address == (fuzz::is_ipv4(text) || fuzz::is_ipv6(text)));
    require(asked.starts_with(text));
    const std::string_view rest = asked.substr(text.size());
    if (is_address) {
        require(rest.empty() || rest.starts_with('%'));
    } else {
        require(rest.empty() || rest == ".");
        require(text.size() <= 253);
        fuzz::for_each_part(text, '.', [](std::string_view label) {
            require(!label.empty() && std::ranges::all_of(label, [](char letter) {
                return fuzz::is_digit(letter) || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '_';
            }));
        });
    }
    const auto again = monolock::tls::expected_server_name(where, text);
    require(again && *again == *expected);
}

// What of() makes of the socket address with this text, which is an IP literal and a port.
peer_address peer_of(const host_and_port& text) {
    sockaddr_storage storage{};
    const auto port = htons(static_cast<std::uint16_t>(std::stoul(std::string{text.port})));
    const std::string host{text.host};
    if (text.bracketed) {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = port;
        require(::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) == 1);
        std::memcpy(&storage, &address, sizeof address);
    } else {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = port;
        require(::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1);
        std::memcpy(&storage, &address, sizeof address);
    }
    return peer_address::of(-1, storage);
}

bool is_local_peer(std::string_view text) {
    constexpr std::string_view begin = "unix:pid=";
    constexpr std::string_view middle = ",uid=";
    const std::size_t at = text.find(middle);
    if (!text.starts_with(begin) || at == std::string_view::npos) {
        return false;
    }
    std::string_view pid = text.substr(begin.size(), at - begin.size());
    const std::string_view uid = text.substr(at + middle.size());
    const bool negative = pid.starts_with('-') && pid != "-0";
    pid.remove_prefix(negative ? 1 : 0);
    const auto as_printed = [](std::string_view number) {
        return number == "0" || !number.starts_with('0');
    };
    return as_printed(pid) && as_printed(uid) &&
           fuzz::is_number_up_to(pid, 0x7FFFFFFFU + (negative ? 1U : 0U)) &&
           fuzz::is_number_up_to(uid, 0xFFFFFFFFU);
}

void check_peer(std::string_view text) {
    const auto peer = peer_address::parse(text);
    if (peer) {
        require(peer->to_string() == text);
    }
    if (text.starts_with("unix:")) {
        require(peer.has_value() == is_local_peer(text));
        return;
    }
    const auto parts = oracle(text);
    const bool literal =
        parts && (parts->bracketed ? fuzz::is_ipv6(parts->host) : fuzz::is_ipv4(parts->host));
    const bool as_printed = literal && peer_of(*parts).to_string() == text;
    require(peer.has_value() == as_printed);
    require(!peer || *peer == peer_of(*parts));
}

}  // namespace

// The first byte says how much of the text is the name that was given.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::choices input{data, size};
    const std::string_view given = input.text(input.next());
    const std::string_view text = input.rest();
    const auto parsed = config::parse_address(text);
    check_address(text, parsed);
    if (parsed) {
        check_server_name(*parsed, given);
    }
    check_list(text);
    check_peer(text);
    return 0;
}
