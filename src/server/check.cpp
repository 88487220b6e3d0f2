#include "server/check.hpp"

#include <utility>

#include "server/access_file.hpp"
#include "server/audit_file.hpp"
#include "server/tls_files.hpp"

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
