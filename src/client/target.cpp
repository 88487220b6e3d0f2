#include "client/target.hpp"

#include <algorithm>
#include <utility>

namespace monolock::detail {

namespace {

// As good as for ever, and far from where a sum with a reading of the clock would overflow.
constexpr std::chrono::hours connect_timeout_max{8760};

[[noreturn]] void refuse(errc code, const std::string& detail) {
    throw error{make_error_code(code), stage::preparing, detail};
}

std::vector<place> checked_places(const std::string& text) {
    const auto list = config::parse_address_list(text);
    if (!list) {
        refuse(errc::invalid_address, list.error().text);
    }
    std::vector<place> made;
    for (const config::address& where : *list) {
        const auto* const tcp = std::get_if<config::tcp_address>(&where);
        if (tcp != nullptr && tcp->port == 0) {
            refuse(errc::invalid_address, "a client needs the server's port, not 0");
        }
        made.push_back({.text = config::to_string(where),
                        .where = where,
                        .endpoints = std::nullopt,
                        .secured = std::nullopt});
    }
    if (made.size() == 1) {
        made.front().text = text;  // as its owner wrote it
    }
    return made;
}

bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

void check_files(const tls_options& given) {
    if (given.certificate_file.empty() != given.key_file.empty()) {
        refuse(errc::invalid_options, "tls: certificate_file and key_file go together");
    }
    if (has_nul(given.ca_file) || has_nul(given.certificate_file) || has_nul(given.key_file)) {
        refuse(errc::invalid_options, "tls: a path has no NUL");
    }
}

security checked_security(const tls_options& given, const config::address& where) {
    auto expected = tls::expected_server_name(where, given.server_name);
    if (!expected) {
        refuse(errc::invalid_options, "tls: server_name: " + expected.error().text);
    }
    return {.files = {.ca = given.ca_file,
                      .certificate = given.certificate_file,
                      .key = given.key_file},
            .expected = *std::move(expected)};
}

}  // namespace

target::target(client_options given)
    : options{std::move(given)}, places{checked_places(options.address)} {
    if (options.connect_timeout <= std::chrono::milliseconds{0}) {
        refuse(errc::invalid_options, "connect_timeout must be positive");
    }
    options.connect_timeout =
        std::min<std::chrono::milliseconds>(options.connect_timeout, connect_timeout_max);
    if (options.tls) {
        check_files(*options.tls);
        tls::keep_openssl_until_exit();
    }
    for (place& each : places) {
        if (options.tls) {
            each.secured = checked_security(*options.tls, each.where);
        }
        each.endpoints = numeric_endpoints(each.where);
    }
    if (options.local_address.empty()) {
        return;
    }
    const bool has_path = std::any_of(places.begin(), places.end(), [](const place& each) {
        return std::holds_alternative<config::unix_address>(each.where);
    });
    if (options.dialer || has_path) {
        refuse(errc::invalid_options, "local_address goes with a TCP address and without a dialer");
    }
    local = parse_local_endpoint(options.local_address);
    if (!local) {
        refuse(errc::invalid_address, "local_address is not a numeric address");
    }
}

}  // namespace monolock::detail
