#include "tls/client_context.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>

#include "tls/pem.hpp"

namespace monolock::tls {

namespace {

struct free_digest {
    void operator()(EVP_MD_CTX* state) const noexcept { EVP_MD_CTX_free(state); }
};

// The texts of a client's files, as far as they could be read.
struct client_texts {
    client_texts(const client_files& files, config::diagnostics& errors)
        : ca{read(files.ca, errors)},
          certificate{read(files.certificate, errors)},
          key{read(files.key, errors)} {}

    // No path: no text, and nothing is wrong.
    static pem_text read(const std::string& path, config::diagnostics& errors) {
        return path.empty() ? pem_text{} : pem_text{path, errors};
    }

    pem_text ca;
    pem_text certificate;
    pem_text key;
};

void trust_file(const context& in, const std::string& path, const pem_text& text,
                config::diagnostics& errors) {
    const auto authorities = parse_pem(path, text, parse_certificates, errors);
    if (!authorities) {
        return;
    }
    for (const certificate& each : *authorities) {
        if (X509_STORE_add_cert(SSL_CTX_get_cert_store(in.get()), each.get()) != 1) {
            throw std::bad_alloc{};
        }
    }
    // What the file names is trusted, even if it is no root.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(in.get()), X509_V_FLAG_PARTIAL_CHAIN);
}

// Certificates of a folder are looked up when they are needed, by the thread that shakes hands.
void trust_system(const context& in, config::diagnostics& errors) {
    if (SSL_CTX_set_default_verify_paths(in.get()) != 1) {
        errors.push_back({"the system's certificate store: " + take_openssl_error()});
    }
}

void show(const context& in, const client_files& files, const client_texts& texts,
          config::diagnostics& errors) {
    const auto chain = parse_pem(files.certificate, texts.certificate, parse_certificates, errors);
    const auto key = parse_pem(files.key, texts.key, parse_private_key, errors);
    if (chain && key) {
        use_own(in, {.certificate = files.certificate, .key = files.key}, *chain, *key, errors);
    }
}

// OpenSSL calls it when the server asks for a certificate, whether or not there is one to show.
int on_certificate_request(SSL* ssl, void*) {
    channel::of(ssl).note_certificate_request();
    return 1;
}

// `errors` has what kept the texts from being read.
config::checked<context> make_client_context(const client_files& files, const client_texts& texts,
                                             config::diagnostics errors) {
    context made;
    try {
        made = make_context(role::client);
    } catch (const std::runtime_error& failed) {
        return config::diagnostics{{.text = failed.what()}};
    }
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_purpose(made.get(), X509_PURPOSE_SSL_SERVER);
    SSL_CTX_set_cert_cb(made.get(), on_certificate_request, nullptr);
    SSL_CTX_set_mode(made.get(), SSL_MODE_NO_AUTO_CHAIN);  // shown is what the file has, no more
    if (files.ca.empty()) {
        trust_system(made, errors);
    } else {
        trust_file(made, files.ca, texts.ca, errors);
    }
    if (!files.certificate.empty()) {
        show(made, files, texts, errors);
    }
    if (!errors.empty()) {
        return errors;
    }
    return made;
}

// Of the texts, each with its length before it.
std::array<unsigned char, 32> digest_of(const client_texts& texts) {
    std::array<unsigned char, 32> made{};
    const std::unique_ptr<EVP_MD_CTX, free_digest> state{EVP_MD_CTX_new()};
    bool done = state && EVP_DigestInit_ex(state.get(), EVP_sha256(), nullptr) == 1;
    for (const pem_text* const each : {&texts.ca, &texts.certificate, &texts.key}) {
        const std::string_view text = *each ? each->view() : std::string_view{};
        const std::size_t size = text.size();
        done = done && EVP_DigestUpdate(state.get(), &size, sizeof size) == 1 &&
               EVP_DigestUpdate(state.get(), text.data(), size) == 1;
    }
    if (!done || EVP_DigestFinal_ex(state.get(), made.data(), nullptr) != 1) {
        throw std::bad_alloc{};
    }
    return made;
}

// The alerts by which a server that asked for one refuses a client's certificate. Before TLS 1.3
// there is none for "you have none", and servers send handshake_failure.
bool refuses_certificate(const channel& over, bool shows_certificate) {
    if (!over.certificate_requested()) {
        return false;
    }
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
            return !shows_certificate;
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

config::checked<context> client_context_source::current() {
    config::diagnostics errors;
    const client_texts texts{files_, errors};
    const digest now = digest_of(texts);
    if (errors.empty()) {
        if (context before = made_before_of(now)) {
            return before;
        }
    }
    auto made = make_client_context(files_, texts, std::move(errors));
    if (made) {
        const std::scoped_lock held{mutex_};
        last_ = *made;
        made_of_ = now;
        made_at_ = std::chrono::steady_clock::now();
    }
    return made;
}

// Null if there is none, or it is too old.
context client_context_source::made_before_of(const digest& texts) {
    const std::scoped_lock held{mutex_};
    const bool is_outdated =
        files_.ca.empty() && std::chrono::steady_clock::now() - made_at_ > system_store_age;
    return made_of_ == texts && !is_outdated ? last_ : nullptr;
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
