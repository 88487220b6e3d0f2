#pragma once

#include <openssl/ssl.h>

#include <string>

#include "support.hpp"
#include "support/scratch_folder.hpp"
#include "support/tls_server_side.hpp"

namespace monolock::testing {

// A scripted server with a certificate for localhost and 127.0.0.1, and clients that trust it. The
// parameter is the highest version of TLS that it speaks.
class over_tls : public ::testing::TestWithParam<int> {
protected:
    over_tls() {
        test::show(side, authority.issue({.dns = {"localhost"}, .addresses = {"127.0.0.1"}}));
        speak_at_most(GetParam());
    }

    void speak_at_most(int version) const {
        test::require_tls(SSL_CTX_set_max_proto_version(side.get(), version));
    }

    // Trusts the server; with a certificate and its key if they are given.
    [[nodiscard]] tls_options trusting() const { return {.ca_file = ca}; }
    [[nodiscard]] tls_options showing(const test::credentials& own) const {
        return {.ca_file = ca,
                .certificate_file = folder.write("client.pem", own.certificate),
                .key_file = folder.write("client.key", own.key)};
    }
    [[nodiscard]] client_options options_with(tls_options how) const {
        client_options options;
        options.address = server.address();
        options.tls = std::move(how);
        return options;
    }
    [[nodiscard]] client make(tls_options how) const {
        return client{options_with(std::move(how))};
    }

    // The next connection with its handshake done.
    [[nodiscard]] peer accept() {
        peer next = server.accept();
        if (const tls::status did = next.secure(side); did != tls::status::ok) {
            throw std::runtime_error{"no handshake: " + next.channel().failure()};
        }
        return next;
    }

    test::certificate_authority authority;
    test::scratch_folder folder;
    std::string ca = folder.write("ca.pem", authority.certificate());
    tls::context side = tls::make_context(tls::role::server);
    scripted_server server;
};

inline std::string version_name(const ::testing::TestParamInfo<int>& version) {
    return version.param == TLS1_2_VERSION ? "tls_1_2" : "tls_1_3";
}

}  // namespace monolock::testing
