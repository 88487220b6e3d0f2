#include "client/target.hpp"

#include <algorithm>
#include <utility>

#include "client/thread.hpp"

namespace monolock::detail {

namespace {

// As good as for ever, and far from where a sum with a reading of the clock would overflow.
constexpr std::chrono::hours connect_timeout_max{8760};

[[noreturn]] void refuse(errc code, const std::string& detail) {
    throw error{make_error_code(code), stage::preparing, detail};
}

config::address checked_address(const std::string& text) {
    auto where = config::parse_address(text);
    if (!where) {
        refuse(errc::invalid_address, where.error().text);
    }
    const auto* const tcp = std::get_if<config::tcp_address>(&*where);
    if (tcp != nullptr && tcp->port == 0) {
        refuse(errc::invalid_address, "a client needs the server's port, not 0");
    }
    return *std::move(where);
}

bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

security checked_security(const tls_options& given, const config::address& where) {
    if (given.certificate_file.empty() != given.key_file.empty()) {
        refuse(errc::invalid_options, "tls: certificate_file and key_file go together");
    }
    if (has_nul(given.ca_file) || has_nul(given.certificate_file) || has_nul(given.key_file)) {
        refuse(errc::invalid_options, "tls: a path has no NUL");
    }
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
    : options{std::move(given)}, where{checked_address(options.address)} {
    if (options.connect_timeout <= std::chrono::milliseconds{0}) {
        refuse(errc::invalid_options, "connect_timeout must be positive");
    }
    options.connect_timeout =
        std::min<std::chrono::milliseconds>(options.connect_timeout, connect_timeout_max);
    if (options.tls) {
        secured = checked_security(*options.tls, where);
        tls::keep_openssl_until_exit();
    }
    endpoints = numeric_endpoints(where);
    if (options.local_address.empty()) {
        return;
    }
    if (options.dialer || std::holds_alternative<config::unix_address>(where)) {
        refuse(errc::invalid_options, "local_address goes with a TCP address and without a dialer");
    }
    local = parse_local_endpoint(options.local_address);
    if (!local) {
        refuse(errc::invalid_address, "local_address is not a numeric address");
    }
}

resolver::resolver(std::weak_ptr<reactor> loop, config::tcp_address where)
    : loop_{std::move(loop)}, where_{std::move(where)} {}

bool resolver::ask(callback then) {
    if (!asking_) {
        asking_ = start_detached_thread(
            [self = shared_from_this()] { self->answer(resolve(self->where_)); });
        if (!asking_) {
            return false;
        }
    }
    waiting_.push_back(std::move(then));
    return true;
}

void resolver::answer(const resolution& found) {
    const auto loop = loop_.lock();
    if (!loop) {
        return;  // the client is gone, and nobody waits
    }
    auto held = loop->lock();
    asking_ = false;
    for (const callback& then : std::exchange(waiting_, {})) {
        then(found, held);
    }
}

}  // namespace monolock::detail
