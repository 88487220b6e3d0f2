#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "config/address.hpp"
#include "config/etcd_endpoints.hpp"
#include "config/options.hpp"
#include "config/parsed.hpp"
#include "config/program_shape.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::config {

inline constexpr unsigned threads_max = 1024;
// The longest time a flag may name: a year. It keeps every later sum of a time and a duration far
// from overflow.
inline constexpr std::chrono::hours time_limit_max{8760};

// Of the lease in etcd; whole seconds. So long is nobody served when the active server has died.
inline constexpr std::chrono::seconds etcd_ttl_max{300};
// The longest name that a server gives itself, in bytes.
inline constexpr std::size_t advertised_name_max = 255;

// Where the server listens if nobody says so.
[[nodiscard]] inline address listen_default() {
    return tcp_address{.host = "0.0.0.0", .port = 7070};
}

// What the server was told. Every value is one the server can work with; nothing is checked later.
struct server_config {
    std::optional<address> listen;        // absent: the service manager's socket, else the default
    std::optional<address> ops_listen;    // absent: no metrics and no health over HTTP
    std::optional<address> admin_listen;  // absent: no administration over HTTP
    std::chrono::nanoseconds io_timeout = std::chrono::seconds{5};  // above zero
    telemetry::log_level log_level = telemetry::log_level::info;
    telemetry::log_format log_format = telemetry::log_format::text;
    std::optional<unsigned> threads;             // 1 to threads_max; absent: number of cores
    std::chrono::nanoseconds shutdown_delay{0};  // zero: none

    // Paths; empty: none. tls_cert and tls_key come together; tls_client_ca only with them, and
    // acl_file only with tls_client_ca.
    std::string tls_cert;
    std::string tls_key;
    std::string tls_client_ca;
    std::string acl_file;
    std::string audit_log;  // "-": standard output

    // One of several servers, of which one is active at a time; without endpoints it is the only
    // one. Paths as above: the certificate and its key come together, and with https endpoints.
    std::vector<etcd_endpoint> etcd_endpoints;
    std::string etcd_prefix = "/monolock/";
    std::chrono::seconds etcd_ttl{5};
    std::string etcd_ca;
    std::string etcd_cert;
    std::string etcd_key;
    std::string etcd_user_file;
    std::string advertise;  // what this server is called among them; empty: host and port

    // How long claims only queue once the server may grant. Absent: as long as the longest lease
    // that its predecessor granted, and then there are endpoints.
    std::optional<std::chrono::milliseconds> grant_delay{0};
    std::chrono::milliseconds grant_delay_max = std::chrono::seconds{60};  // longer is not covered

    [[nodiscard]] bool one_of_several() const noexcept { return !etcd_endpoints.empty(); }

    bool check_only = false;  // read the files, say what is wrong with them, serve nobody

    [[nodiscard]] bool tls() const noexcept { return !tls_cert.empty(); }
    [[nodiscard]] bool mutual_tls() const noexcept { return !tls_client_ca.empty(); }
};

// Texts for standard output, to be followed by exit 0.
struct help_text {
    std::string text;
};
struct version_text {
    std::string text;
};

// A diagnostic is one line for standard error, to be followed by exit 2. It names the flag or the
// variable that was wrong.
using server_arguments = std::variant<server_config, help_text, version_text, diagnostic>;

// The words after the program's name, and the environment.
[[nodiscard]] server_arguments parse_server_arguments(std::span<const char* const> words,
                                                      const environment& variables);

// The same command line as data.
[[nodiscard]] program_shape server_shape();

}  // namespace monolock::config
