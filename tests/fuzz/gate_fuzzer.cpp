// The gate of the admin API against its rules in other words: one Host, which is a literal,
// localhost or ours; no other site; no other origin. Each line of the input is a field, the first
// one the host that is configured.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/choices.hpp"
#include "fuzz/ip_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "server/admin/gate.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace http = monolock::server::http;
using fuzz::require;

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

bool same(std::string_view one, std::string_view other) {
    return std::ranges::equal(one, other, {}, lower, lower);
}

// With its port taken off.
bool is_our_host(std::string_view host, std::string_view configured) {
    const std::size_t colon = host.rfind(':');
    const bool in_brackets = host.ends_with(']');
    if (colon != std::string_view::npos && !in_brackets) {
        const std::string_view port = host.substr(colon + 1);
        if (port.size() > 5 || !std::ranges::all_of(port, fuzz::is_digit)) {
            return false;
        }
        host = host.substr(0, colon);
    }
    if (host.starts_with('[') && host.ends_with(']')) {
        return fuzz::is_ipv6(host.substr(1, host.size() - 2));
    }
    const bool plain =
        !host.empty() && host.find(':') == std::string_view::npos && !host.starts_with('[');
    return plain && (same(host, "localhost") || fuzz::is_ipv4(host) || same(host, configured));
}

bool oracle(const http::request& what, std::string_view configured) {
    std::string_view host;
    int hosts = 0;
    for (const auto& [name, value] : what.fields) {
        if (same(name, "host")) {
            host = value;
            ++hosts;
        }
    }
    const auto is_fine = [&](const http::field& each) {
        if (same(each.name, "sec-fetch-site")) {
            return each.value == "none" || each.value == "same-origin";
        }
        return !same(each.name, "origin") ||
               (same(each.value.substr(0, 7), "http://") && same(each.value.substr(7), host));
    };
    return hosts == 1 && is_our_host(host, configured) && std::ranges::all_of(what.fields, is_fine);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    http::request what;
    std::string_view configured;
    bool first = true;
    fuzz::for_each_part(fuzz::text_of(data, size), '\n', [&](std::string_view line) {
        if (first) {
            configured = line;
            first = false;
            return;
        }
        const std::size_t colon = std::min(line.find(':'), line.size());
        what.fields.push_back(
            {.name = std::string{line.substr(0, colon)},
             .value = std::string{line.substr(std::min(colon + 1, line.size()))}});
    });
    const auto objection = monolock::server::admin::objection(what, configured);
    require(objection.has_value() != oracle(what, configured));
    return 0;
}
