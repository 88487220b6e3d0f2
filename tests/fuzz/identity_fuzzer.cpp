// Who a certificate says its holder is. Any bytes as a certificate: what comes of it is a name that
// the server can work with, or none. And certificates made of chosen names: the one that the rules
// of docs/security.md choose.

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "tls/identity.hpp"
#include "tls/pem.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace tls = monolock::tls;
using fuzz::choices;
using fuzz::require;

bool is_usable(std::string_view name) {
    return !name.empty() && name.find('\0') == std::string_view::npos && fuzz::utf8_oracle(name);
}

void check_any(std::string_view bytes) {
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    const tls::certificate leaf{d2i_X509(nullptr, &at, static_cast<long>(bytes.size()))};
    ERR_clear_error();
    if (leaf) {
        const auto identity = tls::identity_of(leaf.get());
        require(identity ? is_usable(*identity) : fuzz::is_one_line(identity.error().text));
        require(ERR_peek_error() == 0);  // what is left there would explain another failure
    }
}

// A Common Name, in one of the string types of certificates.
struct common_name {
    int type;
    std::string_view bytes;

    // In UTF-8, if it can be.
    [[nodiscard]] std::optional<std::string> text() const {
        if (type == V_ASN1_UTF8STRING) {
            return std::string{bytes};
        }
        std::string out;
        const std::size_t width = type == V_ASN1_BMPSTRING ? 2 : 1;
        if (bytes.size() % width != 0) {
            return std::nullopt;
        }
        for (std::size_t at = 0; at < bytes.size(); at += width) {
            unsigned point = static_cast<unsigned char>(bytes[at]);
            if (width == 2) {
                point = point << 8U | static_cast<unsigned char>(bytes[at + 1]);
            }
            append_utf8(out, point);
        }
        return out;
    }

private:
    // Half a surrogate pair too: which is then no text.
    static void append_utf8(std::string& out, unsigned point) {
        if (point < 0x80) {
            out += static_cast<char>(point);
        } else if (point < 0x800) {
            out += static_cast<char>(0xC0U | point >> 6U);
            out += static_cast<char>(0x80U | (point & 0x3FU));
        } else {
            out += static_cast<char>(0xE0U | point >> 12U);
            out += static_cast<char>(0x80U | (point >> 6U & 0x3FU));
            out += static_cast<char>(0x80U | (point & 0x3FU));
        }
    }
};

struct alternative_name {
    int type;
    std::string_view bytes;
};

struct chosen_names {
    std::vector<common_name> common;
    std::vector<alternative_name> alternative;
};

chosen_names choose_names(choices& choose) {
    constexpr std::array string_types{V_ASN1_UTF8STRING, V_ASN1_PRINTABLESTRING, V_ASN1_IA5STRING,
                                      V_ASN1_T61STRING, V_ASN1_BMPSTRING};
    constexpr std::array name_types{GEN_URI, GEN_DNS, GEN_EMAIL};
    chosen_names made;
    while (choose.any() && made.common.size() + made.alternative.size() < 6) {
        const std::uint8_t kind = choose.next();
        const std::string_view bytes = choose.text(kind >> 4U);
        if (kind % 2 == 0) {
            made.common.push_back({string_types[kind / 2 % 8 % string_types.size()], bytes});
        } else {
            made.alternative.push_back({name_types[kind / 2 % 8 % name_types.size()], bytes});
        }
    }
    return made;
}

std::optional<std::string> oracle(const chosen_names& names) {
    for (const int wanted : {GEN_URI, GEN_DNS}) {
        for (const auto& [type, bytes] : names.alternative) {
            if (type == wanted) {
                return is_usable(bytes) ? std::optional{std::string{bytes}} : std::nullopt;
            }
        }
    }
    if (names.common.size() != 1) {
        return std::nullopt;
    }
    const auto text = names.common.front().text();
    return text && is_usable(*text) ? text : std::nullopt;
}

const unsigned char* data_of(std::string_view bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

struct free_names {
    void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};

tls::certificate certificate_of(const chosen_names& names) {
    tls::certificate made{X509_new()};
    for (const auto& [type, bytes] : names.common) {
        require(X509_NAME_add_entry_by_NID(X509_get_subject_name(made.get()), NID_commonName,
                                           MBSTRING_UTF8, data_of("x"), 1, -1, 0) == 1);
        ASN1_STRING* const text = X509_NAME_ENTRY_get_data(
            X509_NAME_get_entry(X509_get_subject_name(made.get()),
                                X509_NAME_entry_count(X509_get_subject_name(made.get())) - 1));
        require(ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size())) == 1);
        text->type = type;
    }
    if (names.alternative.empty()) {
        return made;
    }
    const std::unique_ptr<GENERAL_NAMES, free_names> all{sk_GENERAL_NAME_new_null()};
    for (const auto& [type, bytes] : names.alternative) {
        ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
        require(ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size())) == 1);
        GENERAL_NAME* const name = GENERAL_NAME_new();
        GENERAL_NAME_set0_value(name, type, text);
        require(sk_GENERAL_NAME_push(all.get(), name) > 0);
    }
    require(X509_add1_ext_i2d(made.get(), NID_subject_alt_name, all.get(), 0, 0) == 1);
    return made;
}

void check_chosen(choices& choose) {
    const chosen_names names = choose_names(choose);
    const auto expected = oracle(names);
    const auto identity = tls::identity_of(certificate_of(names).get());
    require(static_cast<bool>(identity) == expected.has_value());
    require(identity ? *identity == *expected : fuzz::is_one_line(identity.error().text));
    require(ERR_peek_error() == 0);
}

}  // namespace

// The first byte says which of the two.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices input{data, size};
    if (input.next() % 2 == 0) {
        check_any(input.rest());
    } else {
        check_chosen(input);
    }
    return 0;
}
