#include "support/pki.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <stdexcept>

namespace monolock::test {

namespace {

template <class Pointer>
Pointer require(Pointer made) {
    if (!made) {
        throw std::runtime_error{"OpenSSL refuses to make a test certificate"};
    }
    return made;
}

struct free_bio {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using memory_bio = std::unique_ptr<BIO, free_bio>;

memory_bio new_memory() {
    return memory_bio{require(BIO_new(BIO_s_mem()))};
}

std::string text_of(const memory_bio& bio) {
    char* start = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &start);
    return {start, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* made) {
    const memory_bio bio = new_memory();
    require(PEM_write_bio_X509(bio.get(), made));
    return text_of(bio);
}

std::string pem_of(EVP_PKEY* key) {
    const memory_bio bio = new_memory();
    require(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr));
    return text_of(bio);
}

EVP_PKEY* generate(key_kind kind) {
    switch (kind) {
        case key_kind::ec_p256:
            return require(EVP_EC_gen("P-256"));
        case key_kind::rsa_2048:
            return require(EVP_RSA_gen(2048));
        case key_kind::ed25519:
            return require(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
    }
    return nullptr;
}

void set_subject(X509* made, const std::vector<std::string>& common_names) {
    X509_NAME* const subject = X509_get_subject_name(made);
    for (const std::string& each : common_names) {
        // An empty one cannot be made this way and is added as a value of no bytes.
        ASN1_STRING* const value = require(ASN1_STRING_type_new(V_ASN1_UTF8STRING));
        require(ASN1_STRING_set(value, each.data(), static_cast<int>(each.size())));
        X509_NAME_ENTRY* const entry = require(
            X509_NAME_ENTRY_create_by_NID(nullptr, NID_commonName, V_ASN1_UTF8STRING,
                                          ASN1_STRING_get0_data(value), ASN1_STRING_length(value)));
        require(X509_NAME_add_entry(subject, entry, -1, 0));
        X509_NAME_ENTRY_free(entry);
        ASN1_STRING_free(value);
    }
}

void add_text_name(GENERAL_NAMES* names, int type, const std::string& text) {
    GENERAL_NAME* const name = require(GENERAL_NAME_new());
    ASN1_IA5STRING* const value = require(ASN1_IA5STRING_new());
    require(ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())));
    GENERAL_NAME_set0_value(name, type, value);
    require(sk_GENERAL_NAME_push(names, name));
}

void add_address(GENERAL_NAMES* names, const std::string& text) {
    GENERAL_NAME* const name = require(GENERAL_NAME_new());
    GENERAL_NAME_set0_value(name, GEN_IPADD, require(a2i_IPADDRESS(text.c_str())));
    require(sk_GENERAL_NAME_push(names, name));
}

void set_alternative_names(X509* made, const certificate_wishes& wishes) {
    GENERAL_NAMES* const names = require(sk_GENERAL_NAME_new_null());
    for (const std::string& each : wishes.emails) {
        add_text_name(names, GEN_EMAIL, each);
    }
    for (const std::string& each : wishes.dns) {
        add_text_name(names, GEN_DNS, each);
    }
    for (const std::string& each : wishes.uris) {
        add_text_name(names, GEN_URI, each);
    }
    for (const std::string& each : wishes.addresses) {
        add_address(names, each);
    }
    if (sk_GENERAL_NAME_num(names) > 0) {
        require(X509_add1_ext_i2d(made, NID_subject_alt_name, names, 0, 0));
    }
    GENERAL_NAMES_free(names);
}

void add_extension(X509* made, int kind, const char* value) {
    X509_EXTENSION* const extension = require(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
    require(X509_add_ext(made, extension, -1));
    X509_EXTENSION_free(extension);
}

void set_serial(X509* made) {
    std::array<unsigned char, 8> bytes{};
    require(RAND_bytes(bytes.data(), bytes.size()));
    bytes[0] &= 0x7fU;
    bytes[0] |= 0x40U;
    BIGNUM* const number = require(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
    require(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)));
    BN_free(number);
}

}  // namespace

void certificate_authority::free_key::operator()(evp_pkey_st* key) const noexcept {
    EVP_PKEY_free(key);
}

void certificate_authority::free_certificate::operator()(x509_st* made) const noexcept {
    X509_free(made);
}

certificate_authority::certificate_authority(const std::string& common_name)
    : key_{generate(key_kind::ec_p256)} {
    own_ = sign({.common_names = {common_name}, .usage = "", .is_authority = true}, key_.get(),
                nullptr, key_.get());
    certificate_ = pem_of(own_.get());
}

certificate_authority::certificate_authority(leaf own, key signing)
    : key_{std::move(signing)},
      own_{std::move(own)},
      certificate_{pem_of(own_.get())},
      chain_{certificate_} {}

credentials certificate_authority::issue(const certificate_wishes& wishes) {
    const key subject{generate(wishes.key)};
    const leaf made = sign(wishes, subject.get(), own_.get(), key_.get());
    return {.certificate = pem_of(made.get()) + chain_, .key = pem_of(subject.get())};
}

certificate_authority certificate_authority::issue_authority(const std::string& common_name) {
    key subject{generate(key_kind::ec_p256)};
    leaf made = sign({.common_names = {common_name}, .usage = "", .is_authority = true},
                     subject.get(), own_.get(), key_.get());
    return {std::move(made), std::move(subject)};
}

// Self-signed without an issuer.
certificate_authority::leaf certificate_authority::sign(const certificate_wishes& wishes,
                                                        evp_pkey_st* subject, x509_st* issuer,
                                                        evp_pkey_st* by) const {
    leaf made{require(X509_new())};
    require(X509_set_version(made.get(), X509_VERSION_3));
    set_serial(made.get());
    set_subject(made.get(), wishes.common_names);
    require(X509_set_issuer_name(made.get(),
                                 X509_get_subject_name(issuer != nullptr ? issuer : made.get())));
    require(X509_gmtime_adj(X509_getm_notBefore(made.get()), wishes.valid_from.count()));
    require(X509_gmtime_adj(X509_getm_notAfter(made.get()), wishes.valid_until.count()));
    require(X509_set_pubkey(made.get(), subject));
    if (wishes.is_authority) {
        add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE");
        add_extension(made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    }
    if (!wishes.usage.empty()) {
        add_extension(made.get(), NID_ext_key_usage, wishes.usage.c_str());
    }
    set_alternative_names(made.get(), wishes);
    const bool signs_without_digest = EVP_PKEY_is_a(by, "ED25519") == 1;
    require(X509_sign(made.get(), by, signs_without_digest ? nullptr : EVP_sha256()));
    return made;
}

std::string encrypt_key(const std::string& key, const std::string& password) {
    const memory_bio source{require(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())))};
    EVP_PKEY* const plain =
        require(PEM_read_bio_PrivateKey(source.get(), nullptr, nullptr, nullptr));
    const memory_bio bio = new_memory();
    const int done =
        PEM_write_bio_PKCS8PrivateKey(bio.get(), plain, EVP_aes_256_cbc(), password.data(),
                                      static_cast<int>(password.size()), nullptr, nullptr);
    EVP_PKEY_free(plain);
    require(done);
    return text_of(bio);
}

}  // namespace monolock::test
