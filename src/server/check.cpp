#include "server/check.hpp"

#include <utility>

#include "server/access_file.hpp"
#include "server/audit_file.hpp"
#include "server/failover/etcd_files.hpp"
#include "server/server_settings.hpp"
#include "server/tls_files.hpp"
#include "telemetry/escape.hpp"

namespace monolock::server {

namespace {

// What was found wrong so far, and what was found right.
struct verdict {
    config::diagnostics wrong;
    std::string summary;

    void add(const config::diagnostics& more) {
        wrong.insert(wrong.end(), more.begin(), more.end());
    }
};

void check_tls(const config::server_config& configuration, verdict& so_far) {
    if (!configuration.tls()) {
        so_far.summary += "TLS: none, connections are plain\n";
        return;
    }
    if (const auto loaded = load_tls(tls_paths(configuration)); !loaded) {
        so_far.add(loaded.error());
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
        so_far.add(rules.error());
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
        so_far.add({{"audit log " + path + ": " + wrong->text}});
        return;
    }
    so_far.summary += "audit log: " + (path == "-" ? "standard output" : path) + "\n";
}

// Whether etcd can be reached is not for a look at files.
void check_etcd(const config::server_config& configuration, verdict& so_far) {
    if (!configuration.one_of_several()) {
        return;
    }
    if (const auto wrong = check_etcd_files(configuration); !wrong.empty()) {
        so_far.add(wrong);
        return;
    }
    so_far.summary += "etcd:";
    for (const config::etcd_endpoint& each : configuration.etcd_endpoints) {
        so_far.summary += " " + to_string(each);
    }
    so_far.summary +=
        ", this server is called " + telemetry::quoted(name_among_servers(configuration)) + "\n";
}

}  // namespace

config::checked<std::string> check(const config::server_config& configuration) {
    verdict found;
    check_tls(configuration, found);
    check_access(configuration, found);
    check_audit(configuration, found);
    check_etcd(configuration, found);
    if (!found.wrong.empty()) {
        return std::move(found.wrong);
    }
    return std::move(found.summary);
}

}  // namespace monolock::server
