#include "tls/client_context.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "posix/read_file.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {

namespace {

using config::diagnostic;
using config::parsed;

// A few intermediates at most; and more than the bundles that systems ship (a quarter of this).
constexpr std::size_t own_file_bytes_max = 64U << 10U;
constexpr std::size_t ca_file_bytes_max = 1U << 20U;

// Everything that is wrong, as one text.
class findings {
public:
    void add(const std::string& file, const std::string& why) {
        text_ += (text_.empty() ? "" : "; ") + file + ": " + why;
    }
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    [[nodiscard]] diagnostic all() const { return {text_}; }

private:
    std::string text_;
};

// The file's text through a parser; nothing, and a finding, if either refuses.
template <class T>
std::optional<T> load(const std::string& file, std::size_t size_max,
                      parsed<T> (*parse)(std::string_view), findings& wrong) {
    auto text = posix::read_file(file, size_max);
    if (!text) {
        wrong.add(file, text.error().text);
        return std::nullopt;
    }
    std::string pem = *std::move(text);
    auto made = parse(pem);
    OPENSSL_cleanse(pem.data(), pem.size());  // it may be a key
    if (!made) {
        wrong.add(file, made.error().text);
        return std::nullopt;
    }
    return *std::move(made);
}

void trust_file(SSL_CTX* in, const std::string& file, findings& wrong) {
    const auto authorities = load(file, ca_file_bytes_max, &parse_certificates, wrong);
    if (!authorities) {
        return;
    }
    for (const certificate& each : *authorities) {
        if (X509_STORE_add_cert(SSL_CTX_get_cert_store(in), each.get()) != 1) {
            wrong.add(file, take_openssl_error());
            return;
        }
    }
    // What was named is trusted, even if it is no root.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(in), X509_V_FLAG_PARTIAL_CHAIN);
}

void trust_system(SSL_CTX* in, findings& wrong) {
    if (SSL_CTX_set_default_verify_paths(in) != 1) {
        wrong.add("the system's certificate store", take_openssl_error());
    }
}

void show(SSL_CTX* in, const client_files& files, findings& wrong) {
    const auto chain = load(files.certificate, own_file_bytes_max, &parse_certificates, wrong);
    const auto key = load(files.key, own_file_bytes_max, &parse_private_key, wrong);
    if (!chain || !key) {
        return;
    }
    X509* const leaf = chain->front().get();
    if (X509_check_private_key(leaf, key->get()) != 1) {
        ERR_clear_error();
        wrong.add(files.key, "is not the key of the certificate in " + files.certificate);
        return;
    }
    bool taken =
        SSL_CTX_use_certificate(in, leaf) == 1 && SSL_CTX_use_PrivateKey(in, key->get()) == 1;
    for (std::size_t at = 1; taken && at < chain->size(); ++at) {
        taken = SSL_CTX_add1_chain_cert(in, (*chain)[at].get()) == 1;
    }
    if (!taken) {
        wrong.add(files.certificate, take_openssl_error());  // too weak for this system's policy
    }
}

// The alerts by which a server refuses a client's certificate. Before TLS 1.3 there is none for
// "you have none", and servers send handshake_failure after having asked for one.
bool refuses_certificate(const channel& over, bool shows_certificate) {
    switch (*over.alert()) {
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
        case SSL_AD_ACCESS_DENIED:
        case SSL_AD_CERTIFICATE_REQUIRED:
            return true;
        case SSL_AD_HANDSHAKE_FAILURE:
            return !shows_certificate && SSL_get0_peer_CA_list(over.native()) != nullptr;
        default:
            return false;
    }
}

std::string describe_distrust(const channel& over, const server_name& expected) {
    const long result = SSL_get_verify_result(over.native());
    std::string text = X509_verify_cert_error_string(result);
    if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        text += ", its certificate is not for " + expected.text;
    }
    return text;
}

}  // namespace

parsed<context> load_client_context(const client_files& files) {
    context made;
    try {
        made = make_context(role::client);
    } catch (const std::runtime_error& failed) {
        return diagnostic{failed.what()};
    }
    SSL_CTX* const raw = made.get();
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_purpose(raw, X509_PURPOSE_SSL_SERVER);
    SSL_CTX_set_mode(raw, SSL_MODE_NO_AUTO_CHAIN);  // what the file has is what the server gets
    findings wrong;
    if (files.ca.empty()) {
        trust_system(raw, wrong);
    } else {
        trust_file(raw, files.ca, wrong);
    }
    if (!files.certificate.empty()) {
        show(raw, files, wrong);
    }
    if (!wrong.empty()) {
        return wrong.all();
    }
    return made;
}

void expect_server(channel& over, const server_name& name) {
    std::string text = name.text;  // for a parameter that is not const, and is not written to
    SSL* const raw = over.native();
    X509_VERIFY_PARAM* const rules = SSL_get0_param(raw);
    X509_VERIFY_PARAM_set_hostflags(
        rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool done = name.is_address
                          ? X509_VERIFY_PARAM_set1_ip_asc(rules, text.c_str()) == 1
                          : X509_VERIFY_PARAM_set1_host(rules, text.data(), text.size()) == 1 &&
                                SSL_ctrl(raw, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                         TLSEXT_NAMETYPE_host_name, text.data()) == 1;
    if (!done) {
        ERR_clear_error();
        throw std::bad_alloc{};  // the name was checked: nothing else is left
    }
}

client_end client_end_of(const channel& over, bool shows_certificate) {
    if (over.alert()) {
        return refuses_certificate(over, shows_certificate) ? client_end::certificate_refused
                                                            : client_end::other;
    }
    if (SSL_get_verify_result(over.native()) != X509_V_OK) {
        return client_end::server_not_trusted;
    }
    // The state of a client that has said hello and has not recognised an answer.
    return SSL_get_state(over.native()) == TLS_ST_CW_CLNT_HELLO ? client_end::no_tls
                                                                : client_end::other;
}

std::string explain_client_end(const channel& over, const server_name& expected,
                               const std::string& certificate_file) {
    const std::string what = over.failure();
    const std::string alert =
        over.alert() ? what + " (alert " + std::to_string(*over.alert()) + ")" : std::string{};
    switch (client_end_of(over, !certificate_file.empty())) {
        case client_end::server_not_trusted:
            return describe_distrust(over, expected);
        case client_end::certificate_refused:
            return (certificate_file.empty() ? "none was given" : certificate_file) + ": " + alert;
        case client_end::no_tls:
            return "the answer is no TLS; does this port speak it? (" + what + ")";
        case client_end::other:
            break;
    }
    return alert.empty() ? what : "the server says: " + alert;
}

void keep_openssl_until_exit() noexcept {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace monolock::tls
