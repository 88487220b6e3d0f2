#include "tls/server_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <new>
#include <vector>

#include "tls/identity.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {

namespace {

using std::chrono::system_clock;

enum class validity { valid, not_yet, expired };

validity validity_of(X509* made, system_clock::time_point now) {
    std::time_t at = system_clock::to_time_t(now);
    if (X509_cmp_time(X509_get0_notBefore(made), &at) > 0) {
        return validity::not_yet;
    }
    return X509_cmp_time(X509_get0_notAfter(made), &at) < 0 ? validity::expired : validity::valid;
}

void check_validity(const std::string& path, X509* made, system_clock::time_point now,
                    config::diagnostics& errors) {
    switch (validity_of(made, now)) {
        case validity::valid:
            return;
        case validity::not_yet:
            errors.push_back({path + ": the certificate is not valid yet"});
            return;
        case validity::expired:
            errors.push_back({path + ": the certificate has expired"});
            return;
    }
}

void check_purpose(const std::string& path, X509* made, config::diagnostics& errors) {
    if (X509_check_purpose(made, X509_PURPOSE_SSL_SERVER, 0) != 1) {
        errors.push_back({path + ": the certificate is not for TLS servers (see its key usages)"});
    }
}

// Runs within the handshake, after the client has proved to own the certificate's key or will have
// to: what is refused here is answered with an alert.
int verify_client(X509_STORE_CTX* verification, void*) {
    if (X509_verify_cert(verification) != 1) {
        return 0;
    }
    const auto identity = identity_of(X509_STORE_CTX_get0_cert(verification));
    if (!identity) {
        X509_STORE_CTX_set_error(verification, X509_V_ERR_CERT_REJECTED);
        auto* const ssl = static_cast<SSL*>(
            X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
        channel::of(ssl).explain_failure(identity.error().text);
        return 0;
    }
    return 1;
}

// For authorities of one name with keys of their own, as while one replaces the other. OpenSSL goes
// by names and key identifiers; where a certificate carries none, it takes the first authority of
// that name and fails if another one has signed.
int has_issued(X509_STORE_CTX*, X509* certificate, X509* authority) {
    const bool issued = X509_check_issued(authority, certificate) == X509_V_OK &&
                        X509_verify(certificate, X509_get0_pubkey(authority)) == 1;
    ERR_clear_error();
    return issued ? 1 : 0;
}

bool some_share_a_name(const std::vector<certificate>& authorities) {
    for (auto at = authorities.begin(); at != authorities.end(); ++at) {
        const X509_NAME* const name = X509_get_subject_name(at->get());
        if (std::any_of(authorities.begin(), at, [&](const certificate& before) {
                return X509_NAME_cmp(name, X509_get_subject_name(before.get())) == 0;
            })) {
            return true;
        }
    }
    return false;
}

void add_authority(const context& in, X509* authority) {
    X509_STORE* const store = SSL_CTX_get_cert_store(in.get());
    if (X509_STORE_add_cert(store, authority) != 1 ||
        SSL_CTX_add_client_CA(in.get(), authority) != 1) {
        throw std::bad_alloc{};
    }
}

void use_authorities(const context& in, const std::string& path,
                     const std::vector<certificate>& authorities, system_clock::time_point now,
                     config::diagnostics& errors) {
    bool some_valid = false;
    for (std::size_t index = 0; index < authorities.size(); ++index) {
        X509* const each = authorities[index].get();
        if (X509_check_ca(each) == 0) {
            errors.push_back({path + ": certificate " + std::to_string(index + 1) +
                              " is not of a certificate authority"});
            continue;
        }
        some_valid = some_valid || validity_of(each, now) == validity::valid;
        add_authority(in, each);
    }
    if (!some_valid && errors.empty()) {
        errors.push_back({path + ": none of the authorities' certificates is valid now"});
    }
    if (some_share_a_name(authorities)) {  // not always: it verifies each signature twice
        X509_STORE_set_check_issued(SSL_CTX_get_cert_store(in.get()), has_issued);
    }
    // An authority in the file is trusted whether or not the one above it is there too.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(in.get()), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(in.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_cert_verify_callback(in.get(), verify_client, nullptr);
}

struct free_verification {
    void operator()(X509_STORE_CTX* verification) const noexcept {
        X509_STORE_CTX_free(verification);
    }
};

}  // namespace

config::checked<context> load_server_context(const server_files& files,
                                             system_clock::time_point now) {
    config::diagnostics errors;
    const context made = make_context(role::server);
    const auto chain = load_pem(files.certificate, parse_certificates, errors);
    const auto key = load_pem(files.key, parse_private_key, errors);
    if (chain) {
        check_validity(files.certificate, chain->front().get(), now, errors);
        check_purpose(files.certificate, chain->front().get(), errors);
    }
    if (chain && key) {
        use_own(made, {.certificate = files.certificate, .key = files.key}, *chain, *key, errors);
    }
    if (!files.client_ca.empty()) {
        config::diagnostics of_authorities;
        if (const auto found = load_pem(files.client_ca, parse_certificates, of_authorities)) {
            use_authorities(made, files.client_ca, *found, now, of_authorities);
        }
        errors.insert(errors.end(), of_authorities.begin(), of_authorities.end());
    }
    if (!errors.empty()) {
        return errors;
    }
    return made;
}

std::string describe(const context& loaded) {
    std::tm end{};
    std::array<char, 32> until{};
    ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(loaded.get())), &end);
    std::strftime(until.data(), until.size(), "%Y-%m-%dT%H:%M:%SZ", &end);
    std::string text = std::string{"certificate valid until "} + until.data() + ", ";
    const int authorities = sk_X509_NAME_num(SSL_CTX_get_client_CA_list(loaded.get()));
    if ((SSL_CTX_get_verify_mode(loaded.get()) & SSL_VERIFY_PEER) == 0) {
        return text + "clients show none";
    }
    return text + "clients must show one of " + std::to_string(authorities) +
           (authorities == 1 ? " authority" : " authorities");
}

bool still_trusts(const context& newest, const channel& connection) {
    if ((SSL_CTX_get_verify_mode(newest.get()) & SSL_VERIFY_PEER) == 0) {
        return true;
    }
    X509* const leaf = SSL_get0_peer_certificate(connection.native());
    if (leaf == nullptr) {
        return false;
    }
    const std::unique_ptr<X509_STORE_CTX, free_verification> verification{X509_STORE_CTX_new()};
    ERR_clear_error();
    if (!verification ||
        X509_STORE_CTX_init(verification.get(), SSL_CTX_get_cert_store(newest.get()), leaf,
                            SSL_get_peer_cert_chain(connection.native())) != 1 ||
        X509_STORE_CTX_set_default(verification.get(), "ssl_client") != 1) {
        throw std::bad_alloc{};
    }
    // What OpenSSL sets up for a handshake, too.
    X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(verification.get());
    X509_VERIFY_PARAM_set_auth_level(rules, SSL_CTX_get_security_level(newest.get()));
    const bool trusted = X509_VERIFY_PARAM_set1(rules, SSL_CTX_get0_param(newest.get())) == 1 &&
                         X509_verify_cert(verification.get()) == 1;
    ERR_clear_error();
    return trusted;
}

}  // namespace monolock::tls
