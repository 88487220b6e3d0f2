#include "tls/identity.hpp"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <optional>
#include <string_view>

#include "protocol/utf8.hpp"

namespace monolock::tls {

namespace {

using config::diagnostic;
using config::parsed;

parsed<std::string> checked(std::string text) {
    if (text.empty()) {
        return diagnostic{"the certificate's name is empty"};
    }
    if (text.find('\0') != std::string::npos) {
        return diagnostic{"the certificate's name contains a NUL"};
    }
    if (!protocol::is_valid_utf8(text)) {
        return diagnostic{"the certificate's name is not valid UTF-8"};
    }
    return text;
}

std::string bytes_of(const ASN1_STRING* text) {
    const auto* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
    return {data, static_cast<std::size_t>(ASN1_STRING_length(text))};
}

struct free_names {
    void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};
using general_names = std::unique_ptr<GENERAL_NAMES, free_names>;

std::optional<std::string> first_of(const GENERAL_NAMES* names, int kind) {
    for (int index = 0; index < sk_GENERAL_NAME_num(names); ++index) {
        int found = 0;
        const void* const value =
            GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), &found);
        if (found == kind) {
            return bytes_of(static_cast<const ASN1_STRING*>(value));
        }
    }
    return std::nullopt;
}

parsed<std::string> common_name_of(x509_st* leaf) {
    X509_NAME* const subject = X509_get_subject_name(leaf);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0) {
        return diagnostic{"the certificate has no name"};
    }
    if (X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) {
        return diagnostic{"the certificate has two Common Names"};
    }
    // Whatever string type the name has becomes UTF-8; one that cannot is refused.
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) {
        ERR_clear_error();
        return diagnostic{"the certificate's Common Name cannot be read"};
    }
    std::string name{reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
    OPENSSL_free(text);
    return checked(std::move(name));
}

}  // namespace

parsed<std::string> identity_of(x509_st* leaf) {
    int found = -1;  // -1: no such extension; -2: more than one
    const general_names names{
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, &found, nullptr))};
    if (!names && found != -1) {
        ERR_clear_error();
        return diagnostic{"the certificate's alternative names cannot be read"};
    }
    if (names) {
        for (const int kind : {GEN_URI, GEN_DNS}) {
            if (auto name = first_of(names.get(), kind)) {
                return checked(*std::move(name));
            }
        }
    }
    return common_name_of(leaf);
}

std::string identity_of_peer(const channel& connection) {
    X509* const leaf = SSL_get0_peer_certificate(connection.native());
    if (leaf == nullptr) {
        return {};
    }
    auto identity = identity_of(leaf);  // there is one, or the handshake would have failed
    return identity ? *std::move(identity) : std::string{};
}

}  // namespace monolock::tls
