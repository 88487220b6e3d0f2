#include "server/failover/etcd_files.hpp"

#include "etcd/user.hpp"
#include "tls/client_context.hpp"

namespace monolock::server {

config::diagnostics check_etcd_files(const config::server_config& configuration) {
    config::diagnostics wrong;
    if (!configuration.etcd_ca.empty() || !configuration.etcd_cert.empty()) {
        const auto made = tls::client_context_source{{.ca = configuration.etcd_ca,
                                                      .certificate = configuration.etcd_cert,
                                                      .key = configuration.etcd_key}}
                              .current();
        if (!made) {
            wrong = made.error();
        }
    }
    if (const std::string& path = configuration.etcd_user_file; !path.empty()) {
        if (const auto who = etcd::read_user_file(path); !who) {
            wrong.push_back({path + ": " + who.error().text});
        }
    }
    return wrong;
}

}  // namespace monolock::server
