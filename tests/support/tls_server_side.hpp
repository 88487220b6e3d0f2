#pragma once

#include <openssl/ssl.h>

#include <stdexcept>

#include "support/pki.hpp"
#include "tls/context.hpp"
#include "tls/pem.hpp"

namespace monolock::test {

inline void require_tls(long done) {
    if (done != 1) {
        throw std::runtime_error{"OpenSSL refuses a test's server: " + tls::take_openssl_error()};
    }
}

// The certificate, with what comes after it in its file, that a server of a test shows.
inline void show(const tls::context& in, const credentials& own) {
    const auto chain = tls::parse_certificates(own.certificate);
    const auto key = tls::parse_private_key(own.key);
    require_tls(SSL_CTX_use_certificate(in.get(), chain->front().get()));
    require_tls(SSL_CTX_use_PrivateKey(in.get(), key->get()));
    require_tls(SSL_CTX_clear_chain_certs(in.get()));
    for (std::size_t at = 1; at < chain->size(); ++at) {
        require_tls(SSL_CTX_add1_chain_cert(in.get(), (*chain)[at].get()));
    }
}

// From now on a client must have a certificate of this authority.
inline void demand_certificate_of(const certificate_authority& whom, const tls::context& in) {
    const auto found = tls::parse_certificates(whom.certificate());
    require_tls(X509_STORE_add_cert(SSL_CTX_get_cert_store(in.get()), found->front().get()));
    SSL_CTX_set_verify(in.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

}  // namespace monolock::test
