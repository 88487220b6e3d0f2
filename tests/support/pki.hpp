#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace monolock::test {

enum class key_kind { ec_p256, rsa_2048, ed25519 };

// Whole files in PEM form.
struct credentials {
    std::string certificate;
    std::string key;
};

// What a certificate is to say. Names go in byte for byte, so that odd ones can be made; their
// order is kept.
struct certificate_wishes {
    std::vector<std::string> common_names{};
    std::vector<std::string> dns{};
    std::vector<std::string> uris{};
    std::vector<std::string> emails{};
    std::vector<std::string> addresses{};  // "127.0.0.1", "::1"
    // Extended key usage as OpenSSL writes it: "serverAuth", "clientAuth", "serverAuth,clientAuth".
    // Empty: the extension is left out.
    std::string usage = "serverAuth,clientAuth";
    std::chrono::seconds valid_from = std::chrono::hours{-1};  // from now
    std::chrono::seconds valid_until = std::chrono::hours{24};
    key_kind key = key_kind::ec_p256;
    bool is_authority = false;
};

// Certificates made while a test runs. Throws std::runtime_error when OpenSSL refuses.
class certificate_authority {
public:
    explicit certificate_authority(const std::string& common_name = "test authority");

    // Its own certificate, PEM.
    [[nodiscard]] const std::string& certificate() const noexcept { return certificate_; }
    [[nodiscard]] credentials issue(const certificate_wishes& wishes);
    // An authority below this one. Its chain: its own certificate comes after each leaf.
    [[nodiscard]] certificate_authority issue_authority(const std::string& common_name);

private:
    struct free_key {
        void operator()(evp_pkey_st* key) const noexcept;
    };
    struct free_certificate {
        void operator()(x509_st* made) const noexcept;
    };
    using key = std::unique_ptr<evp_pkey_st, free_key>;
    using leaf = std::unique_ptr<x509_st, free_certificate>;

    certificate_authority(leaf own, key signing);
    [[nodiscard]] leaf sign(const certificate_wishes& wishes, evp_pkey_st* subject, x509_st* issuer,
                            evp_pkey_st* by) const;

    key key_;
    leaf own_;
    std::string certificate_;
    std::string chain_;  // appended to what it issues
};

// The key in PEM form, encrypted with a password.
[[nodiscard]] std::string encrypt_key(const std::string& key, const std::string& password);

}  // namespace monolock::test
