#include "server/check.hpp"

#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include "server/access_file.hpp"
#include "server/audit_file.hpp"
#include "tls/server_context.hpp"

namespace monolock::server {

namespace {

// What was found wrong so far, and what was found right.
struct verdict {
    config::diagnostics wrong;
    std::string summary;
};

void check_tls(const config::server_config& configuration, verdict& so_far) {
    if (!configuration.tls()) {
        so_far.summary += "TLS: none, connections are plain\n";
        return;
    }
    const auto loaded = tls::load_server_context({.certificate = configuration.tls_cert,
                                                  .key = configuration.tls_key,
                                                  .client_ca = configuration.tls_client_ca},
                                                 std::chrono::system_clock::now());
    if (const auto* const errors = std::get_if<tls::file_errors>(&loaded)) {
        for (const std::string& each : *errors) {
            so_far.wrong.push_back({each});
        }
        return;
    }
    so_far.summary += configuration.mutual_tls() ? "TLS: clients must show a certificate\n"
                                                 : "TLS: clients show no certificate\n";
}

void check_access(const config::server_config& configuration, verdict& so_far) {
    if (configuration.acl_file.empty()) {
        so_far.summary += "access rules: none, every client may claim every lock\n";
        return;
    }
    const auto rules = load_access_rules(configuration.acl_file);
    if (!rules) {
        so_far.wrong.insert(so_far.wrong.end(), rules.error().begin(), rules.error().end());
        return;
    }
    so_far.summary += "access rules: " + describe(*rules) + "\n";
}

void check_audit(const config::server_config& configuration, verdict& so_far) {
    const std::string& path = configuration.audit_log;
    if (path.empty()) {
        return;
    }
    if (const auto wrong = audit_file::check(path)) {
        so_far.wrong.push_back({"audit log " + path + ": " + wrong->text});
        return;
    }
    so_far.summary += "audit log: " + (path == "-" ? "standard output" : path) + "\n";
}

}  // namespace

config::checked<std::string> check(const config::server_config& configuration) {
    verdict found;
    check_tls(configuration, found);
    check_access(configuration, found);
    check_audit(configuration, found);
    if (!found.wrong.empty()) {
        return std::move(found.wrong);
    }
    return std::move(found.summary);
}

}  // namespace monolock::server
