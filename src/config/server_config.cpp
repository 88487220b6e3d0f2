#include "config/server_config.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/duration.hpp"
#include "config/number.hpp"
#include "protocol/utf8.hpp"

namespace monolock::config {

namespace {

using std::chrono::nanoseconds;

// What a setter found wrong, or nothing.
using verdict = std::optional<diagnostic>;

template <class T>
verdict assign(T& target, parsed<T> value) {
    if (!value) {
        return value.error();
    }
    target = *std::move(value);
    return std::nullopt;
}

parsed<nanoseconds> parse_time_limit(std::string_view text, nanoseconds least) {
    auto value = parse_duration(text);
    if (value && *value < least) {
        return diagnostic{least == nanoseconds{0} ? "cannot be negative" : "must be above zero"};
    }
    if (value && *value > time_limit_max) {
        return diagnostic{"at most " + format_duration(time_limit_max)};
    }
    return value;
}

verdict set_threads(server_config& config, std::string_view text) {
    const auto count = parse_number<unsigned>(text);
    if (!count || *count == 0 || *count > threads_max) {
        return diagnostic{"must be a number from 1 to " + std::to_string(threads_max)};
    }
    config.threads = count;
    return std::nullopt;
}

verdict set_log_level(server_config& config, std::string_view text) {
    const auto level = telemetry::parse_log_level(text);
    if (!level) {
        return diagnostic{"must be debug, info, warn or error"};
    }
    config.log_level = *level;
    return std::nullopt;
}

verdict set_log_format(server_config& config, std::string_view text) {
    const auto format = telemetry::parse_log_format(text);
    if (!format) {
        return diagnostic{"must be text or json"};
    }
    config.log_format = *format;
    return std::nullopt;
}

template <std::string server_config::*Path>
verdict set_path(server_config& config, std::string_view text) {
    if (text.empty()) {
        return diagnostic{"must name a file"};
    }
    if (text.find('\0') != std::string_view::npos) {
        return diagnostic{"a path has no NUL"};
    }
    config.*Path = text;
    return std::nullopt;
}

verdict set_etcd_ttl(server_config& config, std::string_view text) {
    const auto value = parse_time_limit(text, nanoseconds{1});
    if (!value) {
        return value.error();
    }
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*value);
    if (whole != *value) {
        return diagnostic{"etcd knows whole seconds only"};
    }
    if (whole > etcd_ttl_max) {
        return diagnostic{"at most " + format_duration(etcd_ttl_max)};
    }
    config.etcd_ttl = whole;
    return std::nullopt;
}

verdict set_etcd_prefix(server_config& config, std::string_view text) {
    if (text.empty()) {
        return diagnostic{"must name a prefix"};
    }
    config.etcd_prefix = text;
    return std::nullopt;
}

// Other servers and people read it.
verdict set_advertise(server_config& config, std::string_view text) {
    if (text.empty() || text.size() > advertised_name_max) {
        return diagnostic{"must be a name of 1 to " + std::to_string(advertised_name_max) +
                          " bytes"};
    }
    if (!protocol::is_valid_utf8(text) ||
        std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' '; })) {
        return diagnostic{"must be UTF-8 without control characters"};
    }
    config.advertise = text;
    return std::nullopt;
}

// Whole milliseconds, as leases are: what is below one is rounded up, so that nothing is shorter
// than it was asked for.
parsed<std::chrono::milliseconds> parse_milliseconds(std::string_view text, nanoseconds least) {
    const auto value = parse_time_limit(text, least);
    if (!value) {
        return value.error();
    }
    return std::chrono::ceil<std::chrono::milliseconds>(*value);
}

verdict set_grant_delay(server_config& config, std::string_view text) {
    if (text == "auto") {
        config.grant_delay.reset();
        return std::nullopt;
    }
    return assign(config.grant_delay.emplace(), parse_milliseconds(text, nanoseconds{0}));
}

// A new option is a new row; if it needs another, that is a row of `partners`.
using row = option_row<server_config>;

constexpr std::array rows{
    row{{.name = "listen",
         .variable = "MONOLOCK_LISTEN_ADDRESS",
         .default_text = "0.0.0.0:7070",
         .help = "where clients connect: host:port, :port, [::1]:port or unix:/path"},
        [](server_config& config, std::string_view text) {
            return assign(config.listen.emplace(), parse_address(text));
        }},
    row{{.name = "ops-listen",
         .variable = "MONOLOCK_OPS_LISTEN_ADDRESS",
         .help = "where /metrics, /healthz and /readyz are served over HTTP"},
        [](server_config& config, std::string_view text) {
            return assign(config.ops_listen.emplace(), parse_address(text));
        }},
    row{{.name = "admin-listen",
         .variable = "MONOLOCK_ADMIN_LISTEN_ADDRESS",
         .help = "where operators list, release and kick over HTTP; whoever reaches it may"},
        [](server_config& config, std::string_view text) {
            return assign(config.admin_listen.emplace(), parse_address(text));
        }},
    row{{.name = "tls-cert",
         .variable = "MONOLOCK_TLS_CERT",
         .help = "certificate chain of the server, PEM; with -tls-key: clients speak TLS",
         .takes = value_kind::file},
        set_path<&server_config::tls_cert>},
    row{{.name = "tls-key",
         .variable = "MONOLOCK_TLS_KEY",
         .help = "its private key, PEM, not encrypted",
         .takes = value_kind::file},
        set_path<&server_config::tls_key>},
    row{{.name = "tls-client-ca",
         .variable = "MONOLOCK_TLS_CLIENT_CA",
         .help = "CA certificates, PEM: every client must show a certificate signed by one",
         .takes = value_kind::file},
        set_path<&server_config::tls_client_ca>},
    row{{.name = "acl-file",
         .variable = "MONOLOCK_ACL_FILE",
         .help = "which identity may claim which lock, JSON; needs -tls-client-ca",
         .takes = value_kind::file},
        set_path<&server_config::acl_file>},
    row{{.name = "audit-log",
         .variable = "MONOLOCK_AUDIT_LOG",
         .default_text = "off",
         .help = "file that records each grant and its end, JSON lines; - is standard output",
         .takes = value_kind::file},
        set_path<&server_config::audit_log>},
    row{{.name = "io-timeout",
         .variable = "MONOLOCK_IO_TIMEOUT",
         .default_text = "5s",
         .help = "how long a client may take to send its ACQUIRE or to take a reply"},
        [](server_config& config, std::string_view text) {
            return assign(config.io_timeout, parse_time_limit(text, nanoseconds{1}));
        }},
    row{{.name = "log-level",
         .variable = "MONOLOCK_LOG_LEVEL",
         .default_text = "info",
         .help = "debug, info, warn or error",
         .takes = value_kind::words,
         .words = "debug info warn error"},
        set_log_level},
    row{{.name = "log-format",
         .variable = "MONOLOCK_LOG_FORMAT",
         .default_text = "text",
         .help = "text (logfmt) or json (one object a line)",
         .takes = value_kind::words,
         .words = "text json"},
        set_log_format},
    row{{.name = "threads",
         .variable = "MONOLOCK_THREADS",
         .default_text = "cores",
         .help = "how many threads share the locks"},
        set_threads},
    row{{.name = "shutdown-delay",
         .variable = "MONOLOCK_SHUTDOWN_DELAY",
         .default_text = "0s",
         .help = "how long to go on serving after SIGTERM or SIGINT"},
        [](server_config& config, std::string_view text) {
            return assign(config.shutdown_delay, parse_time_limit(text, nanoseconds{0}));
        }},
    row{{.name = "etcd-endpoints",
         .variable = "MONOLOCK_ETCD_ENDPOINTS",
         .default_text = "none",
         .help = "http(s)://host:port,...: be one of several servers that etcd coordinates"},
        [](server_config& config, std::string_view text) {
            return assign(config.etcd_endpoints, parse_etcd_endpoints(text));
        }},
    row{{.name = "etcd-prefix",
         .variable = "MONOLOCK_ETCD_PREFIX",
         .default_text = "/monolock/",
         .help = "what the keys in etcd begin with; the same for servers that share their locks"},
        set_etcd_prefix},
    row{{.name = "etcd-ttl",
         .variable = "MONOLOCK_ETCD_TTL",
         .default_text = "5s",
         .help = "after how much silence another server takes over; whole seconds"},
        set_etcd_ttl},
    row{{.name = "etcd-ca",
         .variable = "MONOLOCK_ETCD_CA",
         .help = "CA certificates that etcd is trusted by, PEM; the system's otherwise",
         .takes = value_kind::file},
        set_path<&server_config::etcd_ca>},
    row{{.name = "etcd-cert",
         .variable = "MONOLOCK_ETCD_CERT",
         .help = "certificate to show to etcd, PEM; with -etcd-key",
         .takes = value_kind::file},
        set_path<&server_config::etcd_cert>},
    row{{.name = "etcd-key",
         .variable = "MONOLOCK_ETCD_KEY",
         .help = "its private key, PEM, not encrypted",
         .takes = value_kind::file},
        set_path<&server_config::etcd_key>},
    row{{.name = "etcd-user-file",
         .variable = "MONOLOCK_ETCD_USER_FILE",
         .help = "file with one line user:password, for etcd's authentication",
         .takes = value_kind::file},
        set_path<&server_config::etcd_user_file>},
    row{{.name = "advertise",
         .variable = "MONOLOCK_ADVERTISE",
         .default_text = "host:port",
         .help = "what this server is called among the others"},
        set_advertise},
    row{{.name = "grant-delay",
         .variable = "MONOLOCK_GRANT_DELAY",
         .default_text = "0s",
         .help = "how long claims only queue after a start or a failover; auto (with etcd): the "
                 "longest lease there was"},
        set_grant_delay},
    row{{.name = "grant-delay-max",
         .variable = "MONOLOCK_GRANT_DELAY_MAX",
         .default_text = "1m",
         .help = "the longest that auto delays; longer leases are granted and not covered"},
        [](server_config& config, std::string_view text) {
            return assign(config.grant_delay_max, parse_milliseconds(text, nanoseconds{1}));
        }},
    row{{.name = "check",
         .kind = option_kind::toggle,
         .help = "read and check all files that are configured, then exit"},
        [](server_config& config, std::string_view) -> verdict {
            config.check_only = true;
            return std::nullopt;
        }},
    row{{.name = "version", .kind = option_kind::request, .help = "print the version"}},
    row{{.name = "h", .kind = option_kind::request, .help = "print this table"}},
    row{{.name = "help", .kind = option_kind::request}},
};

constexpr auto options = options_of(rows);

constexpr std::string_view dashes = "-";

// One option means nothing without another.
struct partner {
    std::string_view name;
    std::string_view needed;
};

constexpr std::array partners{
    partner{"tls-cert", "tls-key"},           partner{"tls-key", "tls-cert"},
    partner{"tls-client-ca", "tls-cert"},     partner{"acl-file", "tls-client-ca"},
    partner{"etcd-prefix", "etcd-endpoints"}, partner{"etcd-ttl", "etcd-endpoints"},
    partner{"etcd-ca", "etcd-endpoints"},     partner{"etcd-cert", "etcd-endpoints"},
    partner{"etcd-cert", "etcd-key"},         partner{"etcd-key", "etcd-endpoints"},
    partner{"etcd-key", "etcd-cert"},         partner{"etcd-user-file", "etcd-endpoints"},
    partner{"advertise", "etcd-endpoints"},
};

// Names what was set where it was set, the flag or the variable.
verdict find_missing_partner(const server_config& config, const std::vector<setting>& settings) {
    const auto where = [&settings](std::string_view name) {
        return source_of(options, settings, name);
    };
    for (const partner& each : partners) {
        if (!where(each.name).empty() && where(each.needed).empty()) {
            return diagnostic{where(each.name) + ": needs -" + std::string{each.needed} +
                              " as well"};
        }
    }
    if (!config.grant_delay && !config.one_of_several()) {
        return diagnostic{where("grant-delay") +
                          " \"auto\": needs -etcd-endpoints as well: a server by itself does not "
                          "know what was granted before it"};
    }
    for (const std::string_view name : {"etcd-ca", "etcd-cert"}) {
        if (!where(name).empty() &&
            config.etcd_endpoints.front().scheme != endpoint_scheme::https) {
            return diagnostic{where(name) + ": needs https endpoints in -etcd-endpoints"};
        }
    }
    return std::nullopt;
}

help_text make_help() {
    return {
        "usage: monolock [flags]\n"
        "\n"
        "The lock server. Each flag can be given as its variable in the environment; the flag "
        "wins.\n"
        "Durations are written 5s, 250ms, 1m30s or 1.5h.\n"
        "\n" +
        format_table(options, dashes)};
}

}  // namespace

program_shape server_shape() {
    return {.name = "monolock",
            .dashes = dashes,
            .commands = {{.path = "",
                          .summary = "the lock server",
                          .options = {options.begin(), options.end()},
                          .operands = {}}}};
}

server_arguments parse_server_arguments(std::span<const char* const> words,
                                        const environment& variables) {
    auto scanned = scan(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (const auto request = scanned->request) {
        if (options[*request].name == "version") {
            return version_text{"monolock " MONOLOCK_VERSION "\n"};
        }
        return make_help();
    }
    if (!scanned->rest.empty()) {
        return diagnostic{"stray argument " + quoted_word(scanned->rest.front()) +
                          ": the server takes only flags"};
    }
    const auto settings = with_environment(options, scanned->settings, variables);
    server_config config;
    if (auto wrong = apply(rows, settings, config)) {
        return *std::move(wrong);
    }
    if (auto wrong = find_missing_partner(config, settings)) {
        return *std::move(wrong);
    }
    return config;
}

}  // namespace monolock::config
